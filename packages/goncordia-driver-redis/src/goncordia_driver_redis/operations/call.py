"""One call of a script, and how calls make an operation.

An operation is a generator: it yields calls and receives what their answers mean. A runner drives
it, on asyncio or not, so that no operation exists twice.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

__all__ = ["Argument", "Call", "Op", "Script"]

T = TypeVar("T")

Argument: TypeAlias = bytes | str | int | float


class Script(msgspec.Struct, frozen=True, eq=False):
    """A Lua script as the server gets it. Each is there once.

    Attributes:
        name: its file's name, for messages.
        text: all of it, the common parts included.
        sha: what the server knows it by: the SHA-1 of the text, in lower-case hexadecimal.
        writes: whether it changes anything.
    """

    name: str
    text: bytes
    sha: str
    writes: bool


class Call(msgspec.Struct, Generic[T], frozen=True, eq=False):
    """Run a script once; that is one atomic step.

    Attributes:
        script: what to run.
        key: a key of this installation: in a cluster, whose node it is sent to.
        arguments: what the script finds in ``ARGV``.
        parse: what its answer means. Strings in the answer are bytes.
    """

    script: Script
    key: bytes
    arguments: Sequence[Argument]
    parse: Callable[[Any], T]


Op: TypeAlias = Generator[Call[Any], Any, T]
"""An operation: it yields calls, receives what they gave, and returns its result."""
