"""Checked by mypy and pyright, not run: limits, weights, upcasters, codecs, admission.

Each ``# type: ignore[code]`` is an error that both must find.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, assert_type

from goncordia import (
    Admission,
    Client,
    Job,
    KeyLimit,
    KindPolicy,
    QueuePolicy,
    RateLimit,
    Registry,
    Retention,
    WorkerPool,
)
from goncordia.memory import MemoryDriver, MemoryTx


@dataclass
class Mail:
    kind: ClassVar[str] = "mail"
    tenant: str = ""


class Plain:
    name = "plain"

    def encode(self, kind: str, text: bytes, /) -> bytes:
        return text

    def decode(self, kind: str, stored: bytes, /) -> bytes:
        return stored


class NoDecode:
    name = "half"

    def encode(self, kind: str, text: bytes, /) -> bytes:
        return text


def tenant(job: Job[Any, Any]) -> str:
    return str(job.args.tenant)


def number(job: Job[Any, Any]) -> int:
    return job.attempt


def limits(driver: MemoryDriver, registry: Registry[object]) -> None:
    rate = RateLimit(10, per=timedelta(seconds=1), scope="global", key=tenant)
    RateLimit(10, per=1, scope="everywhere")  # type: ignore[arg-type]
    RateLimit(10, per="1s")  # type: ignore[arg-type]
    RateLimit(10, per=1, key=number)  # type: ignore[arg-type]
    KeyLimit(2)  # type: ignore[call-arg]
    WorkerPool(
        driver,
        registry,
        queues={"mail": 3, "reports": 1},
        queue_policies={"mail": QueuePolicy(rate=[rate, RateLimit(5, per=1)])},
        kind_policies={"mail": KindPolicy(per_key=KeyLimit(2, tenant))},
        codecs=[Plain()],
        retention=Retention(completed=3600, discarded=None),
    )
    WorkerPool(driver, registry, queues={"mail": "3"})  # type: ignore[dict-item]
    WorkerPool(driver, registry, retention=3600)  # type: ignore[arg-type]


def clients(driver: MemoryDriver) -> None:
    client = Client(driver, codec=Plain(), admission=Admission({"mail": 10}, wait=None))
    assert_type(client, Client[MemoryTx])
    Client(driver, codec=NoDecode())  # type: ignore[arg-type]
    Client(driver, admission=10)  # type: ignore[arg-type]


def upcasters(registry: Registry[object]) -> None:
    @registry.upcaster(Mail, from_version=1)
    def named(data: dict[str, Any]) -> dict[str, Any]:
        return data

    assert_type(named({}), dict[str, Any])
    registry.upcaster("mail", from_version=2)(named)
    registry.upcaster(5, from_version=1)  # type: ignore[arg-type]
    registry.upcaster(Mail)  # type: ignore[call-arg]
