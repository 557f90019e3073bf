"""Upcasters: jobs of older versions of the args, step by step up to the worker's."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from goncordia import Client, ConfigurationError, Job, JobState, Registry, WorkerPool
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver


@dataclass
class V1:
    kind: ClassVar[str] = "mail"
    name: str


@dataclass
class V2:
    kind: ClassVar[str] = "mail"
    payload_version: ClassVar[int] = 2
    first: str
    last: str


@dataclass
class V4:
    kind: ClassVar[str] = "mail"
    payload_version: ClassVar[int] = 4
    names: list[str]
    polite: bool = False


def split(data: dict[str, Any]) -> dict[str, Any]:
    first, _, last = data.pop("name").partition(" ")
    return data | {"first": first, "last": last}


def join(data: dict[str, Any]) -> dict[str, Any]:
    return {"names": [data["first"], data["last"]]}


class Bench:
    def __init__(self) -> None:
        self.clock = MockClock()
        self.driver = MemoryDriver(self.clock)
        self.client = Client(self.driver)
        self.registry: Registry[Any] = Registry()
        self.seen: list[Any] = []

    def worker(self, registry: Registry[Any] | None = None) -> None:
        @(registry or self.registry).worker(V4)
        async def work(job: Job[V4]) -> None:
            self.seen.append((job.args.names, job.payload_version))

    async def work(self) -> None:
        async with WorkerPool(self.driver, self.registry, rng=random.Random(1)):
            await self.clock.advance(5)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_each_version_starts_where_it_is(bench: Bench) -> None:
    bench.worker()
    bench.registry.upcaster(V4, from_version=1)(split)
    bench.registry.upcaster(V4, from_version=2)(join)  # from 3 there is none: nothing changed
    old = await bench.client.enqueue(V1("Ann Lee"))
    await bench.client.enqueue(V2("Bob", "Ray"))
    await bench.client.enqueue(V4(["third"]), payload_version=3)
    await bench.client.enqueue(V4(["fourth"]))
    await bench.work()
    assert bench.seen == [
        (["Ann", "Lee"], 1),
        (["Bob", "Ray"], 2),
        (["third"], 3),
        (["fourth"], 4),
    ]
    job = await bench.client.get(old)
    assert (job.state, job.args) == (JobState.COMPLETED, {"name": "Ann Lee"})


async def test_it_is_found_wherever_it_was_registered(bench: Bench) -> None:
    inner: Registry[Any] = Registry()
    bench.worker(inner)
    inner.upcaster("mail", from_version=1)(split)
    bench.registry.upcaster("mail", from_version=2)(join)
    bench.registry.include(inner)
    await bench.client.enqueue(V1("Ann Lee"))
    await bench.work()
    assert bench.seen == [(["Ann", "Lee"], 1)]


async def test_for_a_task(bench: Bench) -> None:
    @bench.registry.task(kind="mail", payload_version=2)
    async def mail(first: str, last: str) -> None:
        bench.seen.append((first, last))

    bench.registry.upcaster(mail, from_version=1)(split)
    await bench.client.enqueue(V1("Ann Lee"))
    await bench.work()
    assert bench.seen == [("Ann", "Lee")]


async def test_it_stays_what_it_was(bench: Bench) -> None:
    @bench.registry.upcaster(V4, from_version=1)
    def first(data: dict[str, Any]) -> dict[str, Any]:
        return split(data)

    assert first({"name": "Ann Lee"}) == {"first": "Ann", "last": "Lee"}


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda data: data["nowhere"], "the upcaster from version 1 raised KeyError"),
        (lambda data: {"nymes": []}, "the stored args do not fit V4: "),
        (lambda data: {"names": [object()]}, "upcast args: "),
    ],
)
async def test_one_that_fails_discards_with_the_reason(
    bench: Bench, step: Any, message: str
) -> None:
    bench.worker()
    bench.registry.upcaster(V4, from_version=1)(step)
    handle = await bench.client.enqueue(V1("Ann Lee"))
    await bench.work()
    job = await bench.client.get(handle)
    assert (job.state, job.attempt) == (JobState.DISCARDED, 1)
    assert job.errors[0].message.startswith(message)
    assert "Ann" not in job.errors[0].message
    assert job.args == {"name": "Ann Lee"}


async def later(data: Any) -> Any: ...


@pytest.mark.parametrize(
    ("args", "version", "function", "message"),
    [
        (V4, 0, split, "from_version: 0 is not a whole number from 1"),
        (V4, "1", split, "from_version: '1' is not a whole number from 1"),
        ("", 1, split, "upcaster: kind: '' is empty"),
        (5, 1, split, "args: 5 is not a dataclass"),
        (V4, 1, later, "upcaster of 'mail' from version 1: <function later"),
        (V4, 1, 5, "upcaster of 'mail' from version 1: 5 is not a plain function"),
    ],
)
def test_wrong_use(bench: Bench, args: Any, version: Any, function: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        bench.registry.upcaster(args, from_version=version)(function)
    assert str(caught.value).startswith(message)


def test_two_from_one_version(bench: Bench) -> None:
    bench.registry.upcaster(V4, from_version=1)(split)
    with pytest.raises(ConfigurationError, match="from version 1: there is one already"):
        bench.registry.upcaster("mail", from_version=1)(split)
    other: Registry[Any] = Registry()
    other.upcaster("mail", from_version=1)(split)
    bench.worker()
    bench.registry.include(other)
    with pytest.raises(ConfigurationError, match="from version 1: there are two"):
        bench.registry.freeze()


def test_one_that_leads_past_the_worker(bench: Bench) -> None:
    bench.worker()
    bench.registry.upcaster(V4, from_version=4)(join)
    with pytest.raises(ConfigurationError) as caught:
        bench.registry.freeze()
    assert str(caught.value) == (
        "upcaster of 'mail': from_version: 4 is not below payload_version, which is 4"
    )


def test_one_of_a_kind_without_a_worker(bench: Bench) -> None:
    bench.worker()
    bench.registry.upcaster("male", from_version=1)(split)
    with pytest.raises(ConfigurationError, match=r"upcaster: 'male' is no kind with a worker; did"):
        bench.registry.freeze()


def test_none_after_a_pool_has_started(bench: Bench) -> None:
    bench.worker()
    bench.registry.freeze()
    with pytest.raises(ConfigurationError, match="a pool uses it already"):
        bench.registry.upcaster("mail", from_version=1)(split)
