from __future__ import annotations

import asyncio
import datetime as dt
import inspect
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest

from goncordia.args import TaskArgs
from goncordia.errors import ConfigurationError, PayloadError
from goncordia.payload import Task, decode_args, encode_args, plan_of


class Order(pydantic.BaseModel):
    number: int


@dataclass
class FakeJob:
    args: Any


async def _resize(
    path: str,
    /,
    width: int = 800,
    *,
    tags: list[str] = [],  # noqa: B006 - each job has a list of its own
    order: Order | None = None,
) -> bytes:
    """Make it smaller."""
    tags.append("seen")
    return f"{path} {width} {tags} {order}".encode()


def _late(later: Later) -> None:
    assert isinstance(later, Later)


class Later(msgspec.Struct):
    x: int


def _named(a: int, b: int) -> int:
    return a - b


resize: Any = Task(_resize, "resize")
resize.__wrapped__.__qualname__ = "resize"  # where pickle will find the task
late: Any = Task(_late, "late")
named: Any = Task(_named, "named", {"queue": "numbers"})


def through_store(args: Any) -> FakeJob:
    return FakeJob(decode_args(type(args), encode_args(args)))


def test_a_task_is_its_function() -> None:
    assert named(5, b=3) == 2
    assert asyncio.run(resize("cat", tags=[])) == b"cat 800 ['seen'] None"
    assert resize.__name__ == "_resize"
    assert resize.__doc__ == "Make it smaller."
    assert named.kind == "named"
    assert repr(named).startswith("<task 'named': ")


def test_args_are_bound_stored_and_called_with() -> None:
    args = resize.args("cat", width=400, order=Order(number=3))
    assert isinstance(args, TaskArgs)
    assert args.kind == "resize"
    assert encode_args(args) == b'{"path":"cat","width":400,"tags":[],"order":{"number":3}}'
    result = asyncio.run(resize.handler()(through_store(args)))
    assert result == b"cat 400 ['seen'] number=3"


def test_a_mutable_default_is_not_shared() -> None:
    for _ in range(2):
        job = FakeJob(decode_args(resize.args_class, b'{"path":"cat"}'))
        assert asyncio.run(resize.handler()(job)) == b"cat 800 ['seen'] None"
    assert inspect.signature(_resize).parameters["tags"].default == []


def test_annotations_are_looked_at_late() -> None:
    args = late.args(Later(3))
    assert late.handler()(through_store(args)) is None


def test_arguments_that_the_function_does_not_take() -> None:
    calls: list[Callable[[], object]] = [
        lambda: named.args(1),
        lambda: named.args(1, 2, 3),
        lambda: named.args(1, c=2),
        lambda: resize.args(path="cat"),
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()


def test_wrong_types_are_refused_at_enqueue() -> None:
    with pytest.raises(PayloadError, match=r"\$\.a: Expected `int`, got `str`") as caught:
        encode_args(named.args("1", 2))
    assert caught.value.kind == "named"


def test_pickled_by_reference() -> None:
    assert pickle.loads(pickle.dumps(resize)) is resize


def test_args_say_what_their_class_says() -> None:
    assert plan_of(named.args_class).kind == "named"
    assert named.args_class.queue == "numbers"
    assert named.args_class.__returns__.__annotations__ == {"return": int}
    assert named.args(1, 2) == named.args(b=2, a=1)


def variadic(*a: int) -> None: ...
def keywords(**a: int) -> None: ...
def reserved(kind: str) -> None: ...
def unknown(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - that is the case
def stranger(a: list[asyncio.Event]) -> None: ...


class Holder:
    def method(self, a: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: None, "task 't': parameter a has no annotation; its type says how it is"),
        (Holder.method, "task 't': parameter self has no annotation; a method cannot be a task"),
        (Holder().method, "task 't': <bound method"),
        (variadic, "task 't': parameter *a cannot be stored; name each parameter"),
        (keywords, "task 't': parameter **a cannot be stored; name each parameter"),
        (reserved, "task 't': parameter kind: the name is taken; choose another"),
        (print, "task 't': <built-in function print> is not a function"),
        (Holder, "task 't': <class"),
    ],
)
def test_what_cannot_be_a_task(function: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Task(function, "t")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (unknown, "task 't': name 'Nowhere' is not defined"),
        (stranger, "args: stranger.a[...]: Event has no JSON form"),
    ],
)
def test_what_is_found_at_the_first_use(function: Any, message: str) -> None:
    task: Any = Task(function, "t")
    with pytest.raises(ConfigurationError) as caught:
        plan_of(task.args_class)
    assert str(caught.value).startswith(message)


def test_options_and_parameters_do_not_mix() -> None:
    def send(queue: str) -> None: ...

    assert Task(send, "t").args("x").queue == "x"  # type: ignore[attr-defined]
    with pytest.raises(ConfigurationError, match="the name is taken"):
        Task(send, "t", {"queue": "mail"})


def test_kind_is_checked() -> None:
    with pytest.raises(ConfigurationError, match=r"^task: kind: '' is empty"):
        Task(_named, "")


def test_a_time_in_a_task() -> None:
    def at(when: dt.datetime) -> dt.datetime:
        return when

    task: Any = Task(at, "at")
    when = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    assert task.handler()(through_store(task.args(when))) == when
