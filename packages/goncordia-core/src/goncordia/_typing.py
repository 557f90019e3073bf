"""Type variables with defaults on every supported Python.

``default=`` exists at run time from Python 3.13 on; type checkers read it from
``typing_extensions``, which their own typeshed brings, so nothing has to be installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["TypeVar"]

if TYPE_CHECKING:
    from typing_extensions import TypeVar
else:
    from typing import TypeVar as _TypeVar

    def TypeVar(name, *constraints, default=None, **options):  # noqa: N802, ARG001  # stands for the class; the default is for checkers
        """A type variable without its default."""
        return _TypeVar(name, *constraints, **options)
