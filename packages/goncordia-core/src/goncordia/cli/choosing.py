"""Options that take one of a few fixed values."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import typer

__all__ = ["one_of"]


def one_of(values: type[StrEnum], text: str) -> Any:
    """An option with these values; typer's own words for a wrong one differ with its version.

    Args:
        values: all of them.
        text: for ``--help``.
    """
    words = [value.value for value in values]

    def parse(given: str) -> StrEnum:
        try:
            return values(given)
        except ValueError:
            shown = ", ".join(map(repr, words))
            raise typer.BadParameter(f"{given!r} is not one of {shown}.") from None

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return typer.Option(
        help=text, parser=parse, metavar=f"[{'|'.join(words)}]", autocompletion=complete
    )
