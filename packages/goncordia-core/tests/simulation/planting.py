"""How a bug is planted: a small change of the real code, for the time of a simulation."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from .options import Options

__all__ = ["BUGS", "Bug", "bug", "planted"]

Replacement = Callable[..., Any]


@dataclass(frozen=True)
class Bug:
    """A bug.

    Attributes:
        rule: the rule that it breaks.
        owner: whose attribute is replaced.
        name: the attribute.
        replacement: by what.
        within: so many seeds, from 0, of which at least one must notice; 0: only a directed scene
            does.
        options: of those seeds.
    """

    rule: str
    owner: object
    name: str
    replacement: object
    within: int = 40
    options: dict[str, Any] = field(default_factory=dict)


BUGS: dict[str, Bug] = {}
"""All bugs, by name."""


def bug(
    rule: str, owner: object, name: str, *, within: int = 40, **options: Any
) -> Callable[[Replacement], Replacement]:
    """Register the decorated function as a bug in the place of that attribute."""
    original = getattr(owner, name)

    def register(replacement: Replacement) -> Replacement:
        ours, theirs = inspect.signature(replacement), inspect.signature(original)
        if len(ours.parameters) != len(theirs.parameters) and "args" not in ours.parameters:
            # It would be noticed for the wrong reason: that it cannot be called.
            raise TypeError(f"{replacement.__name__}{ours} does not stand for {name}{theirs}")
        BUGS[replacement.__name__] = Bug(rule, owner, name, replacement, within, options)
        return replacement

    return register


@contextlib.contextmanager
def planted(name: str) -> Iterator[Callable[..., Options]]:
    """Plant a bug; gives the maker of the options that show it."""
    found = BUGS[name]
    create = isinstance(found.replacement, property)  # in the place of what __init__ sets
    with mock.patch.object(found.owner, found.name, found.replacement, create=create):
        # Limits, left to chance, would keep many a seed from what shows the bug.
        chosen: dict[str, Any] = {"limits": False, **found.options}
        yield lambda **more: Options(**{**chosen, **more})
