from __future__ import annotations

import dataclasses
import datetime as dt
import subprocess
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goncordia.driver.values import At
from goncordia.errors import ConfigurationError
from goncordia.payload import encode_args, plan_of
from goncordia.unique import UniqueOpts, unique_key

NOW = dt.datetime(2026, 11, 30, 7, 45, tzinfo=dt.UTC)


@dataclasses.dataclass
class Report:
    kind: ClassVar[str] = "report"
    user: int
    day: str = ""
    ratio: float = 1.0
    tags: frozenset[str] = frozenset()
    more: dict[str, list[int]] = dataclasses.field(default_factory=dict)


class SameReport(msgspec.Struct, rename="camel"):
    kind: ClassVar[str] = "report"
    user: int
    more: dict[str, list[int]] = {}
    tags: frozenset[str] = frozenset()
    ratio: float = 1.0
    day: str = ""


class ModelReport(pydantic.BaseModel):
    kind: ClassVar[str] = "report"
    ratio: float = 1.0
    user: int
    day: str = ""
    tags: set[str] = set()
    more: dict[str, list[int]] = {}


class Row(msgspec.Struct, array_like=True):
    kind: ClassVar[str] = "row"
    user: int


def key(opts: UniqueOpts, args: Any, queue: str = "default", run_at: dt.datetime = NOW) -> str:
    return made(opts, args, queue, run_at)[0].hex()


def made(
    opts: UniqueOpts, args: Any, queue: str = "default", run_at: dt.datetime = NOW
) -> tuple[bytes, object]:
    kind = plan_of(type(args)).kind
    return unique_key(
        opts, type(args), kind=kind, args=encode_args(args), queue=queue, run_at=run_at
    )


ARGS = Report(5, "monday", 1, frozenset({"b", "a"}), {"z": [1], "a": []})


@pytest.mark.parametrize(
    ("opts", "digest"),
    [
        (UniqueOpts(), "58357ff14a63ea695d49b0c3b5790706105d1187af4c111dd4a01f3496ba651a"),
        (
            UniqueOpts(by_args=True),
            "43156fe40cbeda0439c33cdd23449be8974b600108d71527b1108224a8d072d5",
        ),
        (
            UniqueOpts(by_args=["user", "day"]),
            "9a105170abe4fa14ee1f1ac0bfd4920f16c225d546be4514b61cf27c8450119b",
        ),
        (
            UniqueOpts(by_queue=True),
            "200e56a374b764cee4e6a972bdaed99c3b9c782fffbe1e4c544c22b3cca3b5f1",
        ),
        (
            UniqueOpts(by_period=3600),
            "7c2fd27cbdd66c5d652d575431b7d5154c886e7181ddbe7f65edbf51f9c12e0a",
        ),
        (
            UniqueOpts(key="mine é"),
            "04d6421bba31ef669b2354c904d4561d0d63a3b9293ae812ec0133b5f1b1bcd0",
        ),
        (
            UniqueOpts(by_args=True, by_queue=True, by_period=86400, key="x", until_deleted=True),
            "e5df0d2a9be24368536f9dfdbebff5dae4c05752fcc7ac5d91da29706e65f07f",
        ),
    ],
)
def test_golden_digests(opts: UniqueOpts, digest: str) -> None:
    # Stored jobs hold these: a change here makes duplicates of them.
    assert key(opts, ARGS) == digest


def test_32_bytes() -> None:
    assert len(made(UniqueOpts(), ARGS)[0]) == 32


@pytest.mark.parametrize("cls", [SameReport, ModelReport])
def test_equal_args_of_another_sort_of_class_have_the_same_fields_key(cls: Any) -> None:
    other = cls(user=5, day="monday", ratio=1, tags={"a", "b"}, more={"a": [], "z": [1]})
    opts = UniqueOpts(by_args=["user", "tags", "more", "ratio"])
    assert key(opts, other) == key(opts, ARGS)
    assert key(UniqueOpts(by_args=True), other) == key(UniqueOpts(by_args=True), ARGS)


def test_the_order_of_sets_does_not_count_in_any_process() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_unique import *\n"
        "tags = {'a', 'b', 'c', 'd', 'e'}\n"
        "opts = UniqueOpts(by_args=True)\n"
        "print(key(opts, Report(1, tags=frozenset(tags))))\n"
        "print(key(opts, ModelReport(user=1, tags=tags)))"
    )
    folder = __file__.rpartition("/")[0]
    outs = {
        subprocess.run(
            [sys.executable, "-c", code, folder],
            check=True,
            capture_output=True,
            timeout=60,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outs) == 1


def test_each_dimension_counts() -> None:
    base = key(UniqueOpts(by_args=["user"], by_queue=True, by_period=60, key="k"), ARGS)
    opts = UniqueOpts(by_args=["user"], by_queue=True, by_period=60, key="k")
    assert key(opts, dataclasses.replace(ARGS, day="x")) == base
    changed = [
        key(opts, dataclasses.replace(ARGS, user=6)),
        key(opts, ARGS, queue="other"),
        key(opts, ARGS, run_at=NOW + dt.timedelta(minutes=1)),
        key(UniqueOpts(by_args=["user"], by_queue=True, by_period=60, key="l"), ARGS),
        key(UniqueOpts(by_args=["user"], by_queue=True, by_period=61, key="k"), ARGS),
        key(UniqueOpts(by_args=["day"], by_queue=True, by_period=60, key="k"), ARGS),
    ]
    assert base not in changed
    assert len(set(changed)) == len(changed)


def test_the_kind_always_counts() -> None:
    assert key(UniqueOpts(), ARGS) != key(UniqueOpts(), Row(1))


def test_number_forms_do_not_count() -> None:
    opts = UniqueOpts(by_args=True)
    assert key(opts, Report(1, ratio=2)) == key(opts, Report(1, ratio=2.0))


@pytest.mark.parametrize(
    ("opts", "hold"),
    [
        (UniqueOpts(), "active"),
        (UniqueOpts(by_args=True, key="x"), "active"),
        (UniqueOpts(until_deleted=True), "until_deleted"),
        (UniqueOpts(until_deleted=True, by_period=3600), "until_deleted"),
        (UniqueOpts(by_period=3600), At(dt.datetime(2026, 11, 30, 8, tzinfo=dt.UTC))),
        (UniqueOpts(by_period=dt.timedelta(days=1)), At(dt.datetime(2026, 12, 1, tzinfo=dt.UTC))),
    ],
)
def test_holds(opts: UniqueOpts, hold: object) -> None:
    assert made(opts, ARGS)[1] == hold


@given(
    st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9800, 1, 1)),  # noqa: DTZ001 - made aware
    st.floats(1, 100 * 366 * 86400),
)
def test_periods_hold_the_time_that_they_are_of(run_at: dt.datetime, period: float) -> None:
    run_at = run_at.replace(tzinfo=dt.UTC)
    opts = UniqueOpts(by_period=period)
    digest, hold = made(opts, Row(1), run_at=run_at)
    assert isinstance(hold, At)
    last = hold.when - dt.timedelta(microseconds=1)
    assert run_at < hold.when <= run_at + dt.timedelta(seconds=period)
    assert made(opts, Row(1), run_at=last)[0] == digest
    assert made(opts, Row(1), run_at=hold.when)[0] != digest


def test_a_period_may_end_after_the_last_year() -> None:
    last = dt.datetime(9999, 12, 30, tzinfo=dt.UTC)
    _, hold = made(UniqueOpts(by_period=100 * 365 * 86400), Row(1), run_at=last)
    assert hold == At(dt.datetime.max.replace(tzinfo=dt.UTC))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: UniqueOpts(by_args=["usr"]),
            "unique: by_args: 'usr' is no field of 'report'; did you mean 'user'?",
        ),
        (lambda: UniqueOpts(by_args=[]), "unique: by_args: no field is named"),
        (lambda: UniqueOpts(by_args="user"), "unique: by_args: 'user' is not a sequence of names"),
        (lambda: UniqueOpts(by_args=5), "unique: by_args: 5 is not a sequence of names"),  # type: ignore[arg-type]
        (lambda: UniqueOpts(by_queue="x"), "unique: by_queue: 'x' is not True or False"),  # type: ignore[arg-type]
        (lambda: UniqueOpts(by_period=-1), "unique: by_period: -1 is not a positive number"),
        (lambda: UniqueOpts(by_period=0.5), "unique: by_period: 0.5 is not at least one second"),
        (lambda: UniqueOpts(key=""), "unique: key: '' is empty"),
        (lambda: UniqueOpts(until_deleted=1), "unique: until_deleted: 1 is not True"),  # type: ignore[arg-type]
    ],
)
def test_wrong_values(make: Callable[[], UniqueOpts], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        made(make(), ARGS)
    assert str(caught.value).startswith(message)


def test_fields_of_what_is_stored_as_an_array() -> None:
    assert len(made(UniqueOpts(by_args=True), Row(1))[0]) == 32
    with pytest.raises(ConfigurationError, match="'row' is not stored as a JSON object"):
        made(UniqueOpts(by_args=["user"]), Row(1))


def test_opts_are_values() -> None:
    assert UniqueOpts(by_args=["b", "a"]) == UniqueOpts(by_args=("a", "b", "a"))
    assert hash(UniqueOpts(by_period=60)) == hash(UniqueOpts(by_period=dt.timedelta(minutes=1)))
