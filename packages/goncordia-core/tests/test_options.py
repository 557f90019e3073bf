from __future__ import annotations

import contextlib
import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goncordia import options as options_module
from goncordia.driver.values import NO_TIMEOUT, After, At
from goncordia.errors import ConfigurationError
from goncordia.options import (
    InsertOptions,
    InsertOpts,
    ResolvedOptions,
    concurrency_group,
    options_of,
    pipeline_group,
    resolve,
)
from goncordia.unique import UniqueOpts

WHEN = datetime(2026, 12, 24, tzinfo=UTC)
UNIQUE = UniqueOpts(by_args=True)


def test_nothing_given() -> None:
    assert resolve() == resolve(None, InsertOpts(), {}) == ResolvedOptions()
    assert ResolvedOptions() == ResolvedOptions(
        queue="default",
        priority=0,
        run_at=None,
        unique=None,
        max_attempts=None,
        timeout=None,
        tags=(),
        meta={},
        group=None,
        group_limit=0,
        payload_version=1,
    )


def test_everything_given() -> None:
    found = resolve(
        {
            "queue": "mail",
            "priority": -32768,
            "run_at": WHEN,
            "unique": UNIQUE,
            "max_attempts": 3,
            "timeout": timedelta(minutes=1),
            "tags": ["a", "b"],
            "meta": {"trace": "x"},
            "concurrency_key": "user-1",
            "concurrency_limit": 2,
            "payload_version": 4,
        }
    )
    assert found == ResolvedOptions(
        queue="mail",
        priority=-32768,
        run_at=At(WHEN),
        unique=UNIQUE,
        max_attempts=3,
        timeout=60.0,
        tags=("a", "b"),
        meta={"trace": "x"},
        group=concurrency_group("user-1"),
        group_limit=2,
        payload_version=4,
    )


def test_each_option_is_checked() -> None:
    assert options_module._CHECKS.keys() == InsertOptions.__annotations__.keys()


def test_later_layers_win() -> None:
    found = resolve(
        {"queue": "a", "priority": 1, "tags": ["x"], "unique": UNIQUE, "timeout": 5},
        InsertOpts(queue="b", priority=2),
        InsertOpts(queue="c"),
        {"tags": ["y"], "unique": None, "timeout": None},
    )
    assert found == ResolvedOptions(queue="c", priority=2, tags=("y",), timeout=NO_TIMEOUT)


def test_delay_and_run_at_replace_each_other() -> None:
    assert resolve({"run_at": WHEN}, {"delay": 3}).run_at == After(3.0)
    assert resolve({"delay": timedelta(seconds=3)}, {"run_at": WHEN}).run_at == At(WHEN)
    assert resolve({"delay": 0}).run_at == After(0.0)


@pytest.mark.parametrize(
    ("layers", "group", "limit"),
    [
        ([{"pipeline_id": "p"}], pipeline_group("p"), 1),
        ([{"pipeline_id": "p"}, {"pipeline_id": None}], None, 0),
        ([{"pipeline_id": "p"}, {"concurrency_key": "k", "concurrency_limit": 3}], "key:k", 3),
        ([{"concurrency_key": "k", "concurrency_limit": 3}, {"pipeline_id": "p"}], "pipeline:p", 1),
        ([{"concurrency_key": "k", "concurrency_limit": 3}, {"pipeline_id": None}], "key:k", 3),
        ([{"concurrency_key": "k", "concurrency_limit": 3}, {"concurrency_key": None}], None, 0),
        ([{"concurrency_key": "k", "concurrency_limit": 3}, {"concurrency_limit": 4}], "key:k", 4),
        ([{"concurrency_limit": 3}, {"concurrency_key": "k"}], "key:k", 3),
        ([{"pipeline_id": None, "concurrency_key": "k", "concurrency_limit": 3}], "key:k", 3),
    ],
)
def test_groups(layers: list[dict[str, object]], group: str | None, limit: int) -> None:
    found = resolve(*layers)
    assert (found.group, found.group_limit) == (group, limit)


def test_groups_have_name_spaces_of_their_own() -> None:
    assert pipeline_group("x") != concurrency_group("x")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"quue": "x"}, "'quue' is no option; did you mean 'queue'? (there are: concurrency_key,"),
        ({"queue": None}, "queue: None is not a str"),
        ({"queue": ""}, "queue: '' is empty"),
        ({"queue": "q" * 129}, "queue: 'qqq"),
        ({"queue": "a\x00"}, "queue: 'a\\x00' is not free of control characters"),
        ({"priority": 32768}, "priority: 32768 is not a whole number from -32768 to 32767"),
        ({"priority": True}, "priority: True is not a whole number"),
        ({"priority": "5"}, "priority: '5' is not a whole number"),
        (
            {"run_at": WHEN.replace(tzinfo=None)},
            "run_at: datetime.datetime(2026, 12, 24, 0, 0) is not aware",
        ),
        ({"run_at": "now"}, "run_at: 'now' is not a datetime"),
        ({"run_at": None}, "run_at: None is not a datetime"),
        ({"delay": -1}, "delay: -1 is not a number of seconds from 0"),
        ({"delay": "5m"}, "delay: '5m' is not a number of seconds"),
        ({"delay": 1e12}, "delay: 1000000000000.0 is not at most a hundred years"),
        ({"delay": 1, "run_at": WHEN}, "run_at and delay are given together; give one of them"),
        ({"unique": True}, "unique: True is not a UniqueOpts, such as UniqueOpts(by_args=True)"),
        ({"max_attempts": 0}, "max_attempts: 0 is not a whole number from 1"),
        ({"max_attempts": None}, "max_attempts: None is not a whole number"),
        ({"timeout": 0}, "timeout: 0 is not a positive number of seconds"),
        ({"timeout": -3}, "timeout: -3 is not a positive number of seconds"),
        ({"tags": "mail"}, "tags: 'mail' is not a sequence of names"),
        ({"tags": ["a", ""]}, "tags[1]: '' is empty"),
        ({"tags": [f"t{i}" for i in range(101)]}, "tags: more than 100 names"),
        ({"meta": {"a": 1}}, "meta['a']: 1 is not a str"),
        ({"meta": {"a": "x" * 16384}}, "meta: 16385 bytes are not at most 16384"),
        ({"pipeline_id": ""}, "pipeline_id: '' is empty"),
        ({"concurrency_key": "k"}, "concurrency_key is given without concurrency_limit; give both"),
        ({"concurrency_limit": 1}, "concurrency_limit is given without concurrency_key; give both"),
        ({"concurrency_key": "k", "concurrency_limit": 0}, "concurrency_limit: 0 is not a whole"),
        (
            {"pipeline_id": "p", "concurrency_key": "k", "concurrency_limit": 1},
            "pipeline_id and concurrency_key are given together; give one of them",
        ),
        ({"payload_version": 0}, "payload_version: 0 is not a whole number from 1"),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, dict) else "",
)
def test_wrong_options(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve(given)
    assert str(caught.value).startswith(message)
    with pytest.raises(ConfigurationError) as caught:
        resolve(InsertOpts(**given))
    assert str(caught.value).startswith(message)


def test_insert_opts_are_values() -> None:
    mail = InsertOpts(queue="mail", priority=5)
    assert mail.replace(priority=6) == InsertOpts(queue="mail", priority=6)
    assert mail == InsertOpts(queue="mail", priority=5)
    assert hash(mail) == hash(InsertOpts(queue="mail", priority=7))
    assert repr(mail) == "InsertOpts(queue='mail', priority=5)"
    assert mail.replace(run_at=WHEN).replace(delay=3) == mail.replace(delay=3)
    with pytest.raises(ConfigurationError, match="did you mean 'queue'"):
        mail.replace(quue="x")  # type: ignore[call-arg]


def test_what_was_given_may_be_changed_afterwards() -> None:
    tags, meta = ["a"], {"a": "b"}
    opts = InsertOpts(tags=tags, meta=meta)
    tags.append("b")
    meta["c"] = "d"
    assert resolve(opts) == ResolvedOptions(tags=("a",), meta={"a": "b"})


# ---------------------------------------------------------------- options of args classes


@dataclasses.dataclass
class Base:
    queue: ClassVar[str] = "mail"
    priority: ClassVar[int] = 3


@dataclasses.dataclass
class Mail(Base):
    kind: ClassVar[str] = "mail"
    priority: ClassVar[int] = 5
    tags: ClassVar[list[str]] = ["a"]
    unique: ClassVar[UniqueOpts] = UNIQUE
    timeout: ClassVar[float | None] = None
    max_attempts: ClassVar[int] = 2
    payload_version: ClassVar[int] = 2


class StructMail(msgspec.Struct):
    kind: ClassVar[str] = "mail"
    queue: ClassVar[str] = "mail"
    to: str = ""


class ModelMail(pydantic.BaseModel):
    kind: ClassVar[str] = "mail"
    queue: ClassVar[str] = "mail"


@dataclasses.dataclass
class FieldsOfThatName:
    kind: ClassVar[str] = "fields"
    queue: str = "data"
    priority: int = 99999


class StructFields(msgspec.Struct):
    kind: ClassVar[str] = "fields"
    queue: str = "data"


@dataclasses.dataclass
class Wrong:
    kind: ClassVar[str] = "wrong"
    priority: ClassVar[int] = 99999


@dataclasses.dataclass
class Method:
    kind: ClassVar[str] = "method"

    @property
    def priority(self) -> int:
        return 5


def test_options_of_a_class() -> None:
    assert resolve(options_of(Mail)) == ResolvedOptions(
        queue="mail",
        priority=5,
        tags=("a",),
        unique=UNIQUE,
        timeout=NO_TIMEOUT,
        max_attempts=2,
        payload_version=2,
    )


@pytest.mark.parametrize("cls", [StructMail, ModelMail])
def test_options_of_other_sorts(cls: Any) -> None:
    assert options_of(cls) == InsertOpts(queue="mail")


@pytest.mark.parametrize("cls", [FieldsOfThatName, StructFields])
def test_fields_are_data_and_no_options(cls: Any) -> None:
    assert options_of(cls) == InsertOpts()


def test_wrong_options_of_a_class() -> None:
    with pytest.raises(ConfigurationError, match=r"^args: Wrong\.priority: 99999 is not a whole"):
        options_of(Wrong)
    with pytest.raises(ConfigurationError, match=r"^args: Method\.priority is an option .* plain"):
        options_of(Method)
    with pytest.raises(ConfigurationError, match=r"^args: int is not a dataclass"):
        options_of(int)


# ---------------------------------------------------------------- fuzz

SCRAPS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.timedeltas(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.lists(st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3),
    st.just(UNIQUE),
)
LAYERS = st.dictionaries(st.sampled_from(sorted(InsertOptions.__annotations__)), SCRAPS, max_size=4)


@given(st.lists(LAYERS, max_size=3))
def test_any_options_are_resolved_or_refused(layers: list[dict[str, Any]]) -> None:
    with contextlib.suppress(ConfigurationError):
        found = resolve(*layers)
        assert 1 <= len(found.queue) <= 128
        assert -32768 <= found.priority <= 32767
        assert found.timeout is None or 0 <= found.timeout < 4e9
        assert found.max_attempts is None or found.max_attempts >= 1
        assert (found.group is None) == (found.group_limit == 0)
        assert all(type(tag) is str and tag for tag in found.tags)
        match found.run_at:
            case At(when):
                assert when.tzinfo is UTC
            case After(seconds):
                assert 0 <= seconds < 4e9
            case None:
                pass
        msgspec.json.encode((found.tags, found.meta, found.group, found.queue))
