"""Tables: as wide as the terminal, or, where they go elsewhere, as what they hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["console", "safe", "show", "text"]

_GAP: Final = 2
_ENDLESS: Final = 1_000_000
# What a job says must not steer the terminal.
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def console() -> Console:
    """Stdout: in colour and as wide as the terminal if it is one, else without an end to a line."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=_ENDLESS)


def safe(value: object) -> str:
    """The text of a value, without what steers a terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", str(value))


def text(value: object) -> Text:
    """The same for rich, which reads no markup in it."""
    return value if isinstance(value, Text) else Text(safe(value))


def show(names: Sequence[str], rows: Iterable[Sequence[object]], spare: Sequence[str] = ()) -> None:
    """Print a table of anything on stdout.

    An id or a name that is cut is of no use. So on a narrow terminal whole columns are left out,
    and named below; if the rest is still too wide, its cells are folded, those of the first column
    last.

    Args:
        names: the columns' heads.
        rows: a cell for each of them.
        spare: the columns that may be left out, the first to go first.
    """
    out = console()
    cells = [[text(cell) for cell in row] for row in rows]
    widths = {
        name: max([cell_len(name), *(row[number].cell_len for row in cells)])
        for number, name in enumerate(names)
    }
    left_out: list[str] = []
    for name in spare:
        if sum(widths.values()) + _GAP * (len(widths) - 1) <= out.width:
            break
        left_out.append(name)
        del widths[name]
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    least = (_GAP + 1) * (len(widths) - 1)  # what rich leaves of the others
    for name, width in widths.items():
        whole = name == names[0] and width + least <= out.width
        made.add_column(name, no_wrap=whole, overflow="fold")
    for row in cells:
        made.add_row(*(cell for name, cell in zip(names, row, strict=True) if name in widths))
    out.print(made)
    if left_out:
        out.print(f"not shown, as the terminal is narrow: {', '.join(left_out)}", style="dim")
