"""Function tasks: a function whose parameters are the job's args."""

from __future__ import annotations

import copy
import functools
import inspect
import typing
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeVar, cast, overload

import msgspec

from goncordia import _check
from goncordia._typing import signature
from goncordia.args import TaskArgs
from goncordia.errors import ConfigurationError

__all__ = ["Task", "TaskDecorator"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_RESERVED: Final = frozenset({"kind"})
_VARIADIC: Final[Mapping[object, str]] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


class Task(Generic[P, R, T]):
    """A function that is its own job, as ``registry.task`` makes it.

    Calling it calls the function. ``args`` takes the same arguments and gives what to enqueue::

        await client.enqueue(resize.args("cat.png", width=400))

    Attributes:
        kind: the kind of its jobs.
    """

    def __init__(
        self, function: Callable[P, R], kind: str, options: Mapping[str, object] | None = None
    ) -> None:
        """Make a task of a function; its annotations are looked at only at the first use.

        Args:
            function: a plain or an async function, whose parameters all have a type.
            kind: the kind of its jobs.
            options: what an args class would say about its jobs, such as ``queue``.

        Raises:
            ConfigurationError: it is no function, or cannot be stored by its parameters.
        """
        self.kind = _check.name("task: kind", kind)
        if not inspect.isfunction(function):
            _check.refuse(f"task {kind!r}", function, "a function; use registry.worker for others")
        functools.update_wrapper(self, function)
        self.__wrapped__: Callable[P, R] = function
        self._options = dict(options or {})
        self._signature = signature(function)
        for parameter in self._signature.parameters.values():
            self._check(parameter)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, without a job."""
        return self.__wrapped__(*args, **kwargs)

    def __reduce__(self) -> str:
        # Pickled by reference, as functions are.
        return self.__wrapped__.__qualname__

    def __repr__(self) -> str:
        return (
            f"<task {self.kind!r}: {self.__wrapped__.__module__}.{self.__wrapped__.__qualname__}>"
        )

    def args(self, *args: P.args, **kwargs: P.kwargs) -> TaskArgs[T]:
        """What to enqueue for a call with these arguments.

        Raises:
            TypeError: the function does not take them.
            ConfigurationError: the type of a parameter has no JSON form.
        """
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return self.args_class(**bound.arguments)

    @functools.cached_property
    def args_class(self) -> type[TaskArgs[T]]:
        """The args class: a struct with a field for each parameter.

        Raises:
            ConfigurationError: the annotations cannot be resolved, or msgspec refuses one.
        """
        try:
            hints = typing.get_type_hints(self.__wrapped__, include_extras=True)
            fields = [_field(one, hints) for one in self._signature.parameters.values()]
            namespace = {**self._options, "kind": self.kind, "__returns__": _returning(hints)}
            made = msgspec.defstruct(
                self.__wrapped__.__name__,
                fields,
                bases=(TaskArgs, msgspec.Struct),
                namespace=namespace,
                module=self.__wrapped__.__module__,
                kw_only=True,
                frozen=True,
            )
        except (TypeError, NameError, AttributeError) as error:
            raise ConfigurationError(f"task {self.kind!r}: {error}") from error
        return cast("type[TaskArgs[T]]", made)

    def handler(self) -> Callable[[Any], R]:
        """The function as a worker: it takes a job and calls the function with the job's args."""
        function: Callable[..., R] = self.__wrapped__
        asdict = msgspec.structs.asdict
        positional = [
            name
            for name, parameter in self._signature.parameters.items()
            if parameter.kind is parameter.POSITIONAL_ONLY
        ]
        if not positional:
            return lambda job: function(**asdict(job.args))

        def call(job: Any) -> R:
            named = asdict(job.args)
            return function(*[named.pop(name) for name in positional], **named)

        return call

    def _check(self, parameter: inspect.Parameter) -> None:
        stars = _VARIADIC.get(parameter.kind, "")
        where = f"task {self.kind!r}: parameter {stars}{parameter.name}"
        if stars:
            raise ConfigurationError(f"{where} cannot be stored; name each parameter")
        if parameter.name in _RESERVED or parameter.name in self._options:
            raise ConfigurationError(f"{where}: the name is taken; choose another")
        if parameter.annotation is parameter.empty:
            method = parameter.name in ("self", "cls")
            hint = "a method cannot be a task" if method else "its type says how it is stored"
            raise ConfigurationError(f"{where} has no annotation; {hint}")


class TaskDecorator(Protocol):
    """What ``registry.task(...)`` gives."""

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> Task[P, Coroutine[Any, Any, R], R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R, R]: ...


def _field(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Any:
    name, default = parameter.name, parameter.default
    if default is parameter.empty:
        return name, hints[name]
    try:
        hash(default)
    except TypeError:  # mutable: each job gets its own
        return name, hints[name], msgspec.field(default_factory=lambda: copy.deepcopy(default))
    return name, hints[name], default


def _returning(hints: Mapping[str, Any]) -> Callable[[Any], Any]:
    def __returns__(_self: Any) -> Any:  # noqa: N807 - the name of the protocol
        raise NotImplementedError

    __returns__.__annotations__ = {"return": hints.get("return", Any)}
    return __returns__
