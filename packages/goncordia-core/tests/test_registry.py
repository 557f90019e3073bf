from __future__ import annotations

import asyncio
import functools
import pickle
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

import pytest

from goncordia.driver.values import NO_TIMEOUT
from goncordia.errors import ConfigurationError, PayloadError
from goncordia.job import BaseJob, Job, ProcessJob, SyncJob
from goncordia.options import InsertOpts, options_of
from goncordia.registry import CallNext, Registry
from goncordia.retry import FixedRetry, NoRetry

if TYPE_CHECKING:
    from nowhere import Elsewhere  # type: ignore[import-not-found]


@dataclass
class SendEmail:
    kind: ClassVar[str] = "send_email"
    to: str


@dataclass
class Other:
    kind: ClassVar[str] = "other"


async def send_email(job: Job[SendEmail]) -> str:
    return f"sent {job.args.to}"


def send_sync(job: SyncJob[SendEmail]) -> str:
    return f"sent {job.args.to}"


class Callables:
    async def method(self, job: Any) -> int:
        return 1

    async def __call__(self, job: Any) -> int:
        return 2


class SyncCallable:
    def __call__(self, job: Any) -> int:
        return 3


async def with_more(prefix: str, job: Job[SendEmail]) -> str:
    return prefix + job.args.to


@dataclass(eq=False)
class FakeJob:
    args: Any = None


def one(handler: Any, **options: Any) -> Any:
    registry = Registry()
    registry.add_worker(SendEmail, handler, **options)
    return registry.freeze()["send_email"]


def run(spec: Any, args: Any = None) -> Any:
    result = spec.handler(FakeJob(args))
    return asyncio.run(result) if spec.execution == "async" else result


# ---------------------------------------------------------------- specs


def test_a_worker_as_the_engine_reads_it() -> None:
    registry = Registry()

    @registry.worker(SendEmail, max_attempts=5, timeout=30, retry_policy=NoRetry())
    async def worker(job: Job[SendEmail]) -> None: ...

    (spec,) = registry.freeze().values()
    assert (spec.kind, spec.args_type, spec.execution) == ("send_email", SendEmail, "async")
    assert (spec.max_attempts, spec.timeout, spec.retry_policy) == (5, 30.0, NoRetry())
    assert (spec.middleware, spec.payload_version) == ((), 1)
    assert spec.handler is worker
    assert spec.decode(b'{"to":"x"}', None) == SendEmail("x")
    assert "worker (" in spec.place
    assert "test_registry.py:" in spec.place
    with pytest.raises(PayloadError, match="do not fit SendEmail") as caught:
        spec.decode(b"[]", UUID(int=3))
    assert (caught.value.kind, caught.value.job_id) == ("send_email", UUID(int=3))


def test_what_is_not_said() -> None:
    spec = one(send_email)
    assert (spec.max_attempts, spec.timeout, spec.retry_policy) == (None, None, None)
    assert one(send_email, timeout=None).timeout == NO_TIMEOUT
    assert one(send_email, payload_version=3).payload_version == 3
    assert one(send_email, retry_policy=lambda n: n).retry_policy.delay(4, None, None) == 4.0


def test_a_worker_knows_the_version_of_its_args_class() -> None:
    @dataclass
    class Newer:
        kind: ClassVar[str] = "newer"
        payload_version: ClassVar[int] = 2

    registry = Registry()
    registry.add_worker(Newer, lambda job: None)
    assert registry.freeze()["newer"].payload_version == 2
    registry = Registry()
    registry.add_worker(Newer, lambda job: None, payload_version=3)
    assert registry.freeze()["newer"].payload_version == 3


def test_output() -> None:
    spec = one(send_email)
    assert spec.encode_output({"a": 1}) == b'{"a":1}'
    with pytest.raises(PayloadError, match=r"^output: \$: object has no JSON form$") as caught:
        spec.encode_output(object())
    assert caught.value.kind == "send_email"
    with pytest.raises(PayloadError, match=r"^output: the worker returned a coroutine; register"):
        spec.encode_output(send_email(None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("handler", "execution", "asked", "result"),
    [
        (send_email, "async", None, "sent x"),
        (send_sync, "thread", None, "sent x"),
        (send_sync, "thread", "thread", "sent x"),
        (Callables(), "async", None, 2),
        (Callables().method, "async", None, 1),
        (SyncCallable(), "thread", None, 3),
        (functools.partial(with_more, "to "), "async", None, "to x"),
        (functools.partial(functools.partial(with_more), "to "), "async", None, "to x"),
        (lambda job: 5, "thread", None, 5),
        (lambda job: 5, "async", "async", 5),
        (functools.lru_cache(send_email), "async", "async", "sent x"),
        (SyncCallable().__call__, "thread", None, 3),
    ],
)
def test_how_a_callable_is_run(handler: Any, execution: str, asked: Any, result: object) -> None:
    spec = one(handler, execution=asked)
    assert spec.execution == execution
    assert run(spec, SendEmail("x")) == result


# ---------------------------------------------------------------- refused


def generator(job: Job[SendEmail]) -> Iterator[int]:
    yield 1


async def async_generator(job: Job[SendEmail]) -> AsyncIterator[int]:
    yield 1


async def no_parameter() -> None: ...
async def two_parameters(job: Job[SendEmail], more: int) -> None: ...
async def keyword_only(*, job: Job[SendEmail]) -> None: ...
async def bare_args(args: SendEmail) -> None: ...
async def other_args(job: Job[Other]) -> None: ...
async def sync_job(job: SyncJob[SendEmail]) -> None: ...
def async_job(job: Job[SendEmail]) -> None: ...


@pytest.mark.parametrize(
    ("handler", "options", "message"),
    [
        (generator, {}, "worker of 'send_email': a generator cannot be a worker; return, do not"),
        (async_generator, {}, "worker of 'send_email': a generator cannot be a worker"),
        (no_parameter, {}, "takes () -> 'None'; a worker takes one argument, the Job[SendEmail]"),
        (two_parameters, {}, "a worker takes one argument, the Job[SendEmail]"),
        (keyword_only, {}, "a worker takes one argument, the Job[SendEmail]"),
        (bare_args, {}, "takes SendEmail; it is given Job[SendEmail]"),
        (other_args, {}, "takes a job of Other; it is given Job[SendEmail]"),
        (sync_job, {}, "takes SyncJob; it is given Job[SendEmail] (an async one gets Job, a"),
        (async_job, {}, "takes Job; it is given SyncJob[SendEmail] (an async one gets Job, a"),
        (send_email, {"execution": "thread"}, "an async function runs on the event loop, not with"),
        (send_email, {"execution": "process"}, "an async function runs on the event loop, not"),
        (
            send_email,
            {"execution": "gpu"},
            "execution: 'gpu' is not 'async', 'thread' or 'process'",
        ),
        (5, {}, "worker of 'send_email': 5 is not a function"),
        (SendEmail, {}, "is not a function"),
        (send_email, {"max_attempt": 5}, "'max_attempt' is no worker option; did you mean 'max_"),
        (send_email, {"queue": "x"}, "'queue' is no worker option"),
        (send_email, {"max_attempts": 0}, "max_attempts: 0 is not a whole number from 1"),
        (send_email, {"timeout": -3}, "timeout: -3 is not a positive number of seconds"),
        (send_email, {"retry_policy": NoRetry}, "retry_policy: <class"),
        (send_email, {"payload_version": 0}, "payload_version: 0 is not a whole number from 1"),
        (send_email, {"middleware": send_email}, "is not a sequence of async functions"),
        (send_email, {"middleware": [send_sync]}, "is not async: write async def"),
        (
            send_email,
            {"middleware": [5]},
            "middleware[0]: 5 is not an async function of (job, call",
        ),
        (send_email, {"middleware": [send_email]}, "is not a function of (job, call_next)"),
    ],
)
def test_refused_at_registration(handler: Any, options: Any, message: str) -> None:
    registry = Registry()
    with pytest.raises(ConfigurationError) as caught:
        registry.add_worker(SendEmail, handler, **options)
    assert message in str(caught.value)
    assert registry.kinds == frozenset()


def in_process(job: ProcessJob[SendEmail]) -> None: ...
def with_app(job: ProcessJob[SendEmail, Other]) -> None: ...  # type: ignore[type-arg]  # too many
def a_copy(job: ProcessJob[SendEmail]) -> None: ...


a_copy_of_it = a_copy
del a_copy


class Many:
    def method(self, job: Any) -> None: ...


def make_nested() -> Any:
    def nested(job: Any) -> None: ...

    return nested


IN_A_MODULE = "execution='process' takes a function at the top level of a module"


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (lambda job: None, IN_A_MODULE),
        (make_nested(), IN_A_MODULE),
        (Many().method, IN_A_MODULE),
        (functools.partial(in_process), IN_A_MODULE),
        (generator, "a generator cannot be a worker"),
        (send_email, "an async function runs on the event loop, not with execution='process'"),
        (send_sync, "takes SyncJob; it is given ProcessJob[SendEmail] (an async one gets Job, a"),
        (with_app, "takes the app, which stays in the pool's own process"),
    ],
)
def test_refused_for_a_process(handler: Any, message: str) -> None:
    registry = Registry()
    with pytest.raises(ConfigurationError) as caught:
        registry.add_worker(SendEmail, handler, execution="process")
    assert message in str(caught.value)
    assert registry.kinds == frozenset()


def test_what_another_process_would_not_find_is_refused_when_a_pool_starts() -> None:
    registry = Registry()
    registry.add_worker(SendEmail, a_copy_of_it, execution="process")
    with pytest.raises(ConfigurationError) as caught:
        registry.freeze()
    assert "worker of 'send_email': " in str(caught.value)
    assert "cannot be imported by another process: " in str(caught.value)


def test_a_process_worker_says_how_it_is_imported() -> None:
    spec = one(in_process, execution="process")
    assert spec.execution == "process"
    assert spec.target is not None
    assert pickle.loads(spec.target) == (SendEmail, in_process)
    assert one(send_sync).target is None


def test_what_the_annotation_may_be() -> None:
    async def unannotated(job: Any) -> None: ...
    async def base(job: BaseJob[SendEmail]) -> None: ...
    async def bare(job: Job) -> None: ...
    async def as_object(job: object) -> None: ...
    async def elsewhere(job: Elsewhere) -> None: ...
    async def with_default(job: Job[SendEmail], more: int = 5) -> None: ...
    async def with_app(job: Job[SendEmail, str]) -> None: ...
    async def anything(*args: Any, **kwargs: Any) -> None: ...

    for handler in (
        unannotated, base, bare, as_object, elsewhere, with_default, with_app, anything
    ):  # fmt: skip
        assert one(handler).execution == "async"


def test_a_class_that_is_no_args_class() -> None:
    registry: Any = Registry()
    for add in (registry.worker, lambda cls: registry.add_worker(cls, send_email)):
        with pytest.raises(ConfigurationError, match="args: int is not a dataclass"):
            add(int)


def test_a_second_worker_of_a_kind_names_both_places() -> None:
    registry = Registry()
    registry.add_worker(SendEmail, send_email)
    with pytest.raises(ConfigurationError) as caught:
        registry.add_worker(SendEmail, send_sync)
    first, second = (f"test_registry.{f.__name__} (" for f in (send_email, send_sync))
    assert str(caught.value).startswith("kind 'send_email' has a worker already: ")
    assert 0 < str(caught.value).index(first) < str(caught.value).index(second)
    with pytest.raises(ConfigurationError, match="has a worker already"):

        @registry.task(kind="send_email")
        async def task() -> None: ...


# ---------------------------------------------------------------- tasks


def test_tasks() -> None:
    registry = Registry()

    @registry.task(kind="resize", max_attempts=3, queue="images", tags=["a"], timeout=None)
    async def resize(path: str, /, width: int = 800) -> str:
        return f"{path} {width}"

    @registry.task(kind="plain")
    def plain(a: int) -> int:
        return a + 1

    @registry.task(kind="inline", execution="async")
    def inline(a: int) -> int:
        return a + 2

    assert registry.kinds == {"resize", "plain", "inline"}
    specs = registry.freeze()
    spec = specs["resize"]
    assert (spec.execution, spec.max_attempts, spec.timeout) == ("async", 3, NO_TIMEOUT)
    assert spec.args_type is type(resize.args("x"))
    assert options_of(spec.args_type) == InsertOpts(queue="images", tags=["a"])
    assert run(spec, spec.decode(b'{"path":"cat"}', None)) == "cat 800"
    assert run(specs["plain"], plain.args(1)) == 2
    assert specs["plain"].execution == "thread"
    assert run(specs["inline"], inline.args(1)) == 3


def test_wrong_tasks() -> None:
    def decorate(**options: Any) -> Callable[[Any], object]:
        return Registry().task(**options)

    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: decorate(kind=""), "task: kind: '' is empty"),
        (lambda: decorate(kind="t", quue="x"), "'quue' is no task option; did you mean 'queue'?"),
        (lambda: decorate(kind="t", queue=""), "queue: '' is empty"),
        (lambda: decorate(kind="t", timeout=0)(send_email), "timeout: 0 is not a positive"),
        (lambda: decorate(kind="t")(generator), "task 't': a generator cannot be a worker"),
        (lambda: decorate(kind="t")(Callables()), "is not a function; use registry.worker"),
        (lambda: decorate(kind="t")(lambda *a: 1), "task 't': parameter *a cannot be stored"),
    ]
    for make, message in cases:
        with pytest.raises(ConfigurationError) as caught:
            make()
        assert message in str(caught.value)


def test_an_annotation_that_never_resolves_is_told_when_frozen() -> None:
    registry = Registry()

    @registry.task(kind="t")
    async def task(a: Elsewhere) -> None: ...

    with pytest.raises(ConfigurationError, match="task 't': name 'Elsewhere' is not defined"):
        registry.freeze()


# ---------------------------------------------------------------- including


async def outer(job: Any, call_next: CallNext) -> object:
    return await call_next(job)


async def inner(job: Any, call_next: CallNext) -> object:
    return await call_next(job)


async def own(job: Any, call_next: CallNext) -> object:
    return await call_next(job)


def test_include_is_live_and_keeps_middleware_in_order() -> None:
    app = Registry(middleware=[outer])
    module = Registry(middleware=[inner])
    app.include(module)
    module.add_worker(SendEmail, send_email, middleware=[own])
    app.add_worker(Other, lambda job: None)
    assert app.kinds == {"send_email", "other"}
    specs = app.freeze()
    assert specs["send_email"].middleware == (outer, inner, own)
    assert specs["other"].middleware == (outer,)
    assert module.freeze()["send_email"].middleware == (inner, own)
    assert app.freeze() is specs


def test_include_refuses_second_workers_both_ways() -> None:
    app, module, deep = Registry(), Registry(), Registry()
    app.add_worker(SendEmail, send_email)
    deep.add_worker(SendEmail, send_email)
    module.include(deep)
    with pytest.raises(ConfigurationError, match="has a worker already"):
        app.include(module)
    assert app.kinds == {"send_email"}
    other = Registry()
    app.include(other)
    with pytest.raises(ConfigurationError, match="has a worker already"):
        other.add_worker(SendEmail, send_sync)
    assert other.kinds == frozenset()


def test_include_once_and_never_itself() -> None:
    app, module = Registry(), Registry()
    app.include(module)
    cases: list[tuple[Callable[[], None], str]] = [
        (lambda: app.include(module), "this registry is included already"),
        (lambda: app.include(app), "a registry cannot include itself"),
        (lambda: module.include(app), "a registry cannot include itself"),
        (lambda: app.include("module"), "include: 'module' is not a Registry"),  # type: ignore[arg-type]
    ]
    for wrong, message in cases:
        with pytest.raises(ConfigurationError, match=message):
            wrong()


def test_a_frozen_registry_takes_no_more() -> None:
    app, module = Registry(), Registry()
    app.include(module)
    app.freeze()
    cases: list[Callable[[], None]] = [
        lambda: app.add_worker(SendEmail, send_email),
        lambda: module.add_worker(SendEmail, send_email),
        lambda: app.include(Registry()),
        lambda: module.include(Registry()),
    ]
    for wrong in cases:
        with pytest.raises(ConfigurationError, match="a pool uses it already"):
            wrong()


# ---------------------------------------------------------------- lifespan


@asynccontextmanager
async def lifespan() -> AsyncIterator[str]:
    yield "app"


@asynccontextmanager
async def another() -> AsyncIterator[str]:
    yield "app"


async def bare_generator() -> AsyncIterator[str]:
    yield "app"


async def coroutine() -> str:
    return "app"


def test_lifespan() -> None:
    assert Registry().lifespan is None
    app = Registry(lifespan=lifespan)
    assert app.lifespan is lifespan
    app.include(Registry(lifespan=lifespan))
    with pytest.raises(ConfigurationError, match="has a lifespan of its own"):
        app.include(Registry(lifespan=another))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (bare_generator, "is a generator; put @contextlib.asynccontextmanager above it"),
        (coroutine, "is not a function that gives an async context manager"),
        ("app", "lifespan: 'app' is not a function that gives an async context manager"),
    ],
)
def test_wrong_lifespans(wrong: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Registry(lifespan=wrong)
    assert message in str(caught.value)


def test_wrong_middleware_of_a_registry() -> None:
    with pytest.raises(ConfigurationError, match=r"^middleware\[1\]: .* is not async"):
        Registry(middleware=[outer, send_sync])  # type: ignore[list-item]


def test_retry_rules_of_a_worker() -> None:
    assert one(send_email, retry_policy=FixedRetry(3)).retry_policy == FixedRetry(3)
