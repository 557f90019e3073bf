"""What a user's function is: how it is run, what it takes, where it stands."""

from __future__ import annotations

import functools
import inspect
import pickle
import sys
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from goncordia import _check
from goncordia._typing import signature
from goncordia.errors import ConfigurationError
from goncordia.job import BaseJob, Job, ProcessJob, SyncJob

__all__ = [
    "Execution",
    "check_importable",
    "check_lifespan",
    "check_middleware",
    "check_parameter",
    "execution_of",
    "function_behind",
    "is_async",
    "on_loop",
    "place_of",
]

Execution: TypeAlias = Literal["async", "thread", "process"]
_EXECUTIONS: Final = frozenset({"async", "thread", "process"})
_JOB_TYPES: Final[Mapping[str, type[BaseJob[Any, Any]]]] = {
    "async": Job,
    "thread": SyncJob,
    "process": ProcessJob,
}


def function_behind(handler: Any) -> Callable[..., Any]:
    """The function that runs in the end: behind partials, methods and callable objects."""
    found: Any = handler
    while isinstance(found, functools.partial):
        found = found.func
    if not inspect.isroutine(found) and not inspect.isclass(found):
        found = found.__call__
    function: Callable[..., Any] = found
    return function


def is_async(handler: Any) -> bool:
    """Whether calling it gives a coroutine."""
    return inspect.iscoroutinefunction(function_behind(handler))


def place_of(handler: Any) -> str:
    """Where the function is: ``module.name (file:line)``."""
    function = function_behind(handler)
    name = f"{function.__module__}.{getattr(function, '__qualname__', function)}"
    code = getattr(inspect.unwrap(function), "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"


def execution_of(what: str, handler: Any, asked: Execution | None) -> Execution:
    """How a function is run: as it is asked for, else by what it is.

    Args:
        what: what the user calls it, for the error.
        handler: the function, or any other callable.
        asked: the option ``execution``.

    Raises:
        ConfigurationError: it is no callable, a generator, async where a plain function is
            needed, or cannot be imported by another process.
    """
    if not callable(handler) or isinstance(handler, type):
        _check.refuse(what, handler, "a function")
    if asked is not None and asked not in _EXECUTIONS:
        _check.refuse(f"{what}: execution", asked, "'async', 'thread' or 'process'")
    function = function_behind(handler)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(f"{what}: a generator cannot be a worker; return, do not yield")
    if asked in ("thread", "process") and is_async(handler):
        raise ConfigurationError(
            f"{what}: an async function runs on the event loop, not with execution={asked!r}"
        )
    if asked == "process" and (not inspect.isfunction(handler) or "<" in handler.__qualname__):
        raise ConfigurationError(
            f"{what}: {place_of(handler)} cannot be imported by another process; "
            "execution='process' takes a function at the top level of a module"
        )
    return asked or ("async" if is_async(handler) else "thread")


def on_loop(handler: Callable[[Any], Any]) -> Callable[[Any], Awaitable[object]]:
    """A plain function as what the engine awaits."""

    async def call(job: Any) -> object:
        result = handler(job)
        return await result if inspect.isawaitable(result) else result

    return call


def check_parameter(what: str, handler: Any, args_type: Any, execution: str) -> None:
    """Refuse a worker that cannot be called with its job.

    Args:
        what: what the user calls it, for the error.
        handler: the worker.
        args_type: its args class.
        execution: how it is run.

    Raises:
        ConfigurationError: it takes more or less than the job, or says that it takes another.
    """
    try:
        takes = signature(handler)
    except ValueError:  # written in C: there is nothing to look at
        return
    job_type = _JOB_TYPES[execution]
    wanted = f"{job_type.__name__}[{getattr(args_type, '__name__', args_type)}]"
    try:
        takes.bind(None)
    except TypeError:
        raise ConfigurationError(
            f"{what} takes {takes}; a worker takes one argument, the {wanted}"
        ) from None
    first = next(iter(takes.parameters.values()))
    try:
        annotation = typing.get_type_hints(function_behind(handler)).get(first.name)
    except (TypeError, NameError, AttributeError):
        return  # it names what exists for type checkers only
    said = typing.get_origin(annotation) or annotation
    if not isinstance(said, type) or said is Any or getattr(said, "_is_protocol", False):
        return
    if said not in job_type.__mro__:
        is_job = said in _JOB_TYPES.values()
        hint = " (an async one gets Job, a plain one SyncJob, one in a process ProcessJob)"
        hint = hint if is_job else ""
        raise ConfigurationError(f"{what} takes {said.__name__}; it is given {wanted}{hint}")
    inner, *app = typing.get_args(annotation) or (None,)
    if app and execution == "process":
        raise ConfigurationError(f"{what} takes the app, which stays in the pool's own process")
    if isinstance(inner, type) and "kind" in inner.__dict__ and inner is not args_type:
        raise ConfigurationError(f"{what} takes a job of {inner.__name__}; it is given {wanted}")


def check_importable(what: str, targets: tuple[Any, ...]) -> bytes:
    """How another process imports functions, tasks or classes.

    Args:
        what: what the user calls it, for the error.
        targets: what is to be imported.

    Raises:
        ConfigurationError: another process would not find one, or something else in its place.
    """
    for target in targets:
        if reason := _why_not_importable(target):
            raise ConfigurationError(f"{what} cannot be imported by another process: {reason}")
    return pickle.dumps(targets)


def _why_not_importable(target: Any) -> str | None:
    try:
        found = pickle.loads(pickle.dumps(target))  # noqa: S301  # of the same line's making
    except Exception as error:  # noqa: BLE001  # pickle raises what it likes
        return str(error)
    module = sys.modules.get(getattr(target, "__module__", ""))
    if module is not None and module.__name__ == "__main__" and not hasattr(module, "__file__"):
        return "it stands in no file"
    is_generic = bool(typing.get_args(target))  # equal, but made anew each time
    return None if is_generic or found is target else "another has its name"


def check_middleware(what: str, middleware: Any) -> None:
    """Refuse what is no ``async def middleware(job, call_next)``.

    Raises:
        ConfigurationError: it is not called with two arguments, or not async.
    """
    if not callable(middleware) or isinstance(middleware, type):
        _check.refuse(what, middleware, "an async function of (job, call_next)")
    if not is_async(middleware):
        _check.refuse(what, middleware, "async: write async def")
    try:
        takes = signature(middleware)
    except ValueError:  # written in C: there is nothing to look at
        return
    try:
        takes.bind(None, None)
    except TypeError:
        _check.refuse(what, middleware, f"a function of (job, call_next): it takes {takes}")


def check_lifespan(lifespan: Any) -> Any:
    """The lifespan, if it can be called and is no bare generator function.

    Raises:
        ConfigurationError: it is something else.
    """
    right = "a function that gives an async context manager"
    if not callable(lifespan):
        _check.refuse("lifespan", lifespan, right)
    function = function_behind(lifespan)
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise ConfigurationError(
            f"lifespan: {place_of(lifespan)} is a generator; put @contextlib.asynccontextmanager "
            "above it"
        )
    if is_async(lifespan):
        _check.refuse("lifespan", lifespan, right)
    return lifespan
