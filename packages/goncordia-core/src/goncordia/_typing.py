"""Type variables with defaults and signatures, on every supported version of Python.

``TypeVar(..., default=…)`` came with Python 3.13. Type checkers know it in older versions too, as
``typing_extensions.TypeVar``, whose stub they bring along; at run time the default is not needed.
So nothing has to be installed, on the condition that classes whose parameters have defaults are
subscripted loosely: see :class:`LooseGeneric`.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["LooseGeneric", "TypeVar", "signature"]

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    class LooseGeneric:
        """A base for generic classes whose type parameters have defaults."""

else:
    from typing import TypeVar as _TypeVar

    def TypeVar(name, *constraints, default=None, **options):  # noqa: ARG001, N802 - typing's name
        """``typing.TypeVar``; the default is for type checkers only."""
        return _TypeVar(name, *constraints, **options)

    class LooseGeneric:
        """A base for generic classes whose type parameters have defaults.

        ``Job[Args]`` and ``Job[Args, App]`` are both right, also before Python 3.13.
        """

        __slots__ = ()

        def __class_getitem__(cls, item: Any) -> types.GenericAlias:
            return types.GenericAlias(cls, item)


def signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature, also while an annotation names what does not exist yet.

    Raises:
        ValueError: it has none that Python knows, as some functions written in C.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format  # noqa: PLC0415 - there is none before

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)
