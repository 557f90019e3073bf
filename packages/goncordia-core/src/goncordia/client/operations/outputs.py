"""What args declare of their job's output."""

from __future__ import annotations

import typing
from typing import Any

from goncordia.args import TaskArgs
from goncordia.errors import ConfigurationError

__all__ = ["declared_output"]


def declared_output(cls: type[Any]) -> Any:
    """The type in the annotation of ``__returns__``; ``Any`` where there is none.

    Raises:
        ConfigurationError: the annotation names what does not exist.
    """
    method = getattr(cls, "__returns__", None)
    if method is None or method is TaskArgs.__returns__:
        return Any
    try:
        return typing.get_type_hints(method).get("return", Any)
    except NameError as error:
        raise ConfigurationError(f"{cls.__qualname__}.__returns__: {error}") from error
