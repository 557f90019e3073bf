"""Which function runs which kind of job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Generic, Unpack, overload

import msgspec

from goncordia import _check
from goncordia._handlers import (
    Execution,
    check_importable,
    check_lifespan,
    check_parameter,
    execution_of,
    is_async,
    on_loop,
    place_of,
)
from goncordia._typing import TypeVar
from goncordia.args import JobArgs
from goncordia.errors import ConfigurationError
from goncordia.job import Job, ProcessJob, SyncJob
from goncordia.options import InsertOpts, options_of
from goncordia.payload.codec import args_decoder
from goncordia.payload.fields import kind_of
from goncordia.payload.tasks import Task, TaskDecorator
from goncordia.payload.upcasting import Upcaster
from goncordia.workers import (
    CallNext,
    Middleware,
    TaskOptions,
    WorkerDecorator,
    WorkerOptions,
    WorkerSpec,
    checked_middleware,
    checked_options,
)

__all__ = [
    "CallNext",
    "Middleware",
    "Registry",
    "TaskOptions",
    "WorkerDecorator",
    "WorkerOptions",
    "WorkerSpec",
]

A = TypeVar("A", bound=JobArgs)
S = TypeVar("S", default=object)
U = TypeVar("U", bound=Upcaster)

_OF_JOBS: Final = TaskOptions.__annotations__.keys() - WorkerOptions.__annotations__.keys()


class _Entry(msgspec.Struct, frozen=True, eq=False):
    """A registered worker, before the registry is frozen.

    Its args class is not looked at until then: annotations may name what comes later.
    """

    kind: str
    args_type: Callable[[], Any]
    handler: Callable[[Any], Any]
    execution: Execution
    options: dict[str, Any]
    place: str
    target: Callable[[], tuple[Any, ...]]

    def spec(self, outer: tuple[Middleware, ...], upcasters: Mapping[int, Upcaster]) -> WorkerSpec:
        args_type = self.args_type()
        options = {
            "payload_version": options_of(args_type).given.get("payload_version", 1),
            **self.options,
            "middleware": outer + self.options.get("middleware", ()),
        }
        newest = options["payload_version"]
        if upcasters and max(upcasters) >= newest:
            raise ConfigurationError(
                f"upcaster of {self.kind!r}: from_version: {max(upcasters)} is not below "
                f"payload_version, which is {newest}"
            )
        return WorkerSpec(
            kind=self.kind,
            args_type=args_type,
            decode=args_decoder(args_type),
            execution=self.execution,
            handler=self.handler,
            place=self.place,
            upcasters=upcasters,
            target=self._importable() if self.execution == "process" else None,
            **options,
        )

    def _importable(self) -> bytes:
        return check_importable(f"worker of {self.kind!r}: {self.place}", self.target())


class Registry(Generic[S]):
    """The workers of an application, by the kind of job that they run.

    ::

        registry = Registry()


        @registry.worker(SendEmail, max_attempts=5, timeout=30)
        async def send_email(job: Job[SendEmail]) -> None: ...

    ``S`` is the type of the app: what the lifespan yields, and workers find as ``job.app``.
    """

    @overload
    def __init__(self, *, lifespan: None = None, middleware: Sequence[Middleware] = ()) -> None: ...
    @overload
    def __init__(
        self,
        *,
        lifespan: Callable[[], AbstractAsyncContextManager[S]],
        middleware: Sequence[Middleware] = (),
    ) -> None: ...
    def __init__(
        self,
        *,
        lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        """Make an empty registry.

        Args:
            lifespan: gives an async context manager, entered once when a pool starts and left when
                it has stopped; what it yields is the app.
            middleware: around every worker, the first one outermost.

        Raises:
            ConfigurationError: a value is wrong.
        """
        self._lifespan = None if lifespan is None else check_lifespan(lifespan)
        self._middleware = checked_middleware("middleware", middleware)
        self._entries: dict[str, _Entry] = {}
        self._upcasters: dict[str, dict[int, Upcaster]] = {}
        self._included: list[Registry[Any]] = []
        self._includers: list[Registry[Any]] = []
        self._specs: Mapping[str, WorkerSpec] | None = None

    # ---------------------------------------------------------------- registering

    def worker(
        self,
        args: type[A],
        /,
        *,
        execution: Execution | None = None,
        **options: Unpack[WorkerOptions],
    ) -> WorkerDecorator[A, S]:
        """Make the function below the worker of these args; see :meth:`add_worker`."""
        kind = kind_of(args)

        def decorate(function: Any, /) -> Any:
            self._add_worker(kind, args, function, execution, options)
            return function

        return decorate

    def add_worker(
        self,
        args: type[A],
        handler: Callable[[Job[A, S]], Awaitable[object]]
        | Callable[[SyncJob[A, S]], object]
        | Callable[[ProcessJob[A]], object],
        /,
        *,
        execution: Execution | None = None,
        **options: Unpack[WorkerOptions],
    ) -> None:
        """Register a worker: an async function, a plain one, or any callable like them.

        Args:
            args: the args class, whose kind it runs.
            handler: takes the job. An async function runs on the event loop with a ``Job``, a
                plain one in a thread with a ``SyncJob``.
            execution: ``"async"`` or ``"thread"``, to say so yourself: a plain function with
                ``"async"`` is called on the loop, and what it returns is awaited if it can be.
                ``"process"``: a plain function is called in a process of its own, with a
                ``ProcessJob``.
            **options: see :class:`WorkerOptions`.

        Raises:
            ConfigurationError: a value is wrong, the function is no worker for these args, or the
                kind has a worker already.
        """
        self._add_worker(kind_of(args), args, handler, execution, options)

    def task(
        self, *, kind: str, execution: Execution | None = None, **options: Unpack[TaskOptions]
    ) -> TaskDecorator:
        """Make the function below a job of its own; its parameters are the args.

        ::

            @registry.task(kind="resize", max_attempts=3)
            async def resize(path: str, width: int = 800) -> None: ...


            await client.enqueue(resize.args("cat.png", width=400))

        Args:
            kind: the kind of its jobs. It is stored, so keep it when you rename the function.
            execution: see :meth:`add_worker`.
            **options: see :class:`TaskOptions`.

        Raises:
            ConfigurationError: a value is wrong, a parameter has no type, or the kind has a worker
                already.
        """
        checked = _check.name("task: kind", kind)
        _check.known("task option", options, TaskOptions.__annotations__)
        given: dict[str, Any] = dict(options)
        of_jobs = {name: given.pop(name) for name in _OF_JOBS if name in given}
        InsertOpts(**of_jobs)

        def decorate(function: Any, /) -> Any:
            what = f"task {checked!r}"
            how = execution_of(what, function, execution)
            made: Task[..., Any, Any] = Task(function, checked, of_jobs)
            handler = _called(function, made.handler(), how)
            self._add(
                _Entry(
                    checked,
                    lambda: made.args_class,
                    handler,
                    how,
                    checked_options(given),
                    place_of(function),
                    lambda: (made,),
                )
            )
            return made

        return decorate

    def upcaster(
        self, args: type[JobArgs] | Task[..., Any, Any] | str, /, *, from_version: int
    ) -> Callable[[U], U]:
        """Make the function below bring args of one version up to the next.

        It takes the stored args as plain JSON data, and gives those of ``from_version + 1``. Jobs
        of older versions go through one after the other; a version without an upcaster is taken
        as it is.

        ::

            @registry.upcaster(SendEmail, from_version=1)
            def split_name(data: dict[str, Any]) -> dict[str, Any]:
                first, _, last = data.pop("name").partition(" ")
                return data | {"first": first, "last": last}

        Args:
            args: the args class, the task, or the kind.
            from_version: the ``payload_version`` of the args that it takes.

        Raises:
            ConfigurationError: a value is wrong, or there is one from this version already.
        """
        if isinstance(args, str):
            kind = _check.name("upcaster: kind", args)
        else:
            kind = args.kind if isinstance(args, Task) else kind_of(args)
        version = _check.whole("from_version", from_version, 1)

        def add(function: U, /) -> U:
            what = f"upcaster of {kind!r} from version {version}"
            given: Any = function
            if not callable(given) or isinstance(given, type) or is_async(given):
                _check.refuse(what, given, "a plain function")
            for registry in self._above():
                registry._refuse_when_frozen()
                for inner in registry._all():
                    if version in inner._upcasters.get(kind, ()):
                        raise ConfigurationError(f"{what}: there is one already")
            self._upcasters.setdefault(kind, {})[version] = function
            return function

        return add

    def include(self, other: Registry[S] | Registry[object], /) -> None:
        """Take over all workers of another registry, also those that it gets later.

        Its middleware stays around its workers, inside this registry's.

        Raises:
            ConfigurationError: it has a lifespan of its own, is included already, or a kind has
                a worker in both.
        """
        _check.instance("include", other, Registry, "a Registry")
        if other is self or any(self is inner for inner in other._all()):
            raise ConfigurationError("include: a registry cannot include itself")
        if any(other is inner for inner in self._all()):
            raise ConfigurationError("include: this registry is included already")
        if other._lifespan is not None and other._lifespan is not self._lifespan:
            raise ConfigurationError(
                "include: the registry has a lifespan of its own, and a pool enters only one; "
                "give the including registry a lifespan that does both"
            )
        for registry in self._above():
            registry._refuse_when_frozen()
            for inner in other._all():
                for entry in inner._entries.values():
                    registry._refuse_second(entry)
        self._included.append(other)
        other._includers.append(self)

    # ---------------------------------------------------------------- for pools

    @property
    def lifespan(self) -> Callable[[], AbstractAsyncContextManager[S]] | None:
        """What a pool enters when it starts; None: nothing."""
        return self._lifespan

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that have a worker here."""
        return frozenset(kind for registry in self._all() for kind in registry._entries)

    def freeze(self) -> Mapping[str, WorkerSpec]:
        """The workers by kind; from now on none can be registered.

        Raises:
            ConfigurationError: an args class cannot be decoded, or a task's annotation names what
                does not exist.
        """
        if self._specs is None:
            upcasters = self._all_upcasters()
            _check.known("kind with a worker", upcasters, self.kinds, field="upcaster")
            self._specs = dict(self._frozen((), upcasters))
        return self._specs

    def _frozen(
        self, outer: tuple[Middleware, ...], upcasters: Mapping[str, Mapping[int, Upcaster]]
    ) -> Iterator[tuple[str, WorkerSpec]]:
        outer += self._middleware
        for entry in self._entries.values():
            yield entry.kind, entry.spec(outer, upcasters.get(entry.kind, {}))
        for registry in self._included:
            yield from registry._frozen(outer, upcasters)

    def _all_upcasters(self) -> dict[str, dict[int, Upcaster]]:
        found: dict[str, dict[int, Upcaster]] = {}
        for registry in self._all():
            for kind, upcasters in registry._upcasters.items():
                for version, upcaster in upcasters.items():
                    if version in found.setdefault(kind, {}):
                        raise ConfigurationError(
                            f"upcaster of {kind!r} from version {version}: there are two"
                        )
                    found[kind][version] = upcaster
        return found

    # ---------------------------------------------------------------- inside

    def _add_worker(
        self,
        kind: str,
        args: Any,
        handler: Any,
        execution: Execution | None,
        options: Mapping[str, Any],
    ) -> None:
        what = f"worker of {kind!r}"
        how = execution_of(what, handler, execution)
        what = f"{what}: {place_of(handler)}"
        check_parameter(what, handler, args, how)
        called = _called(handler, handler, how)
        self._add(
            _Entry(
                kind,
                lambda: args,
                called,
                how,
                checked_options(options),
                place_of(handler),
                lambda: (args, handler),
            )
        )

    def _add(self, entry: _Entry) -> None:
        for registry in self._above():
            registry._refuse_when_frozen()
            registry._refuse_second(entry)
        self._entries[entry.kind] = entry

    def _refuse_when_frozen(self) -> None:
        if self._specs is not None:
            raise ConfigurationError(
                "registry: a pool uses it already; register workers before the pool starts"
            )

    def _refuse_second(self, entry: _Entry) -> None:
        for registry in self._all():
            if (first := registry._entries.get(entry.kind)) is not None:
                raise ConfigurationError(
                    f"kind {entry.kind!r} has a worker already: {first.place}; "
                    f"the second is {entry.place}"
                )

    def _all(self) -> Iterator[Registry[Any]]:
        """This registry and all that are included in it."""
        yield self
        for registry in self._included:
            yield from registry._all()

    def _above(self) -> Iterator[Registry[Any]]:
        """This registry and all that it is included in."""
        yield self
        for registry in self._includers:
            yield from registry._above()


def _called(function: Any, handler: Callable[[Any], Any], execution: str) -> Callable[[Any], Any]:
    plain_on_loop = execution == "async" and not is_async(function)
    return on_loop(handler) if plain_on_loop else handler
