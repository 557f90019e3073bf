"""Puts the scripts together: each file with the parts of ``lib/`` that its second line names.

``base`` stands before everything, then what is named before a ``|``, then ``common``. All else
stands in one function, and the names of :mod:`~goncordia_driver_redis.wire.layout` are put in as
numbers: a function is made at each run, and the dearer the more locals of the level around it are
used.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import resources
from typing import Final

from goncordia_driver_redis.operations.call import Script
from goncordia_driver_redis.wire.layout import NUMBERS

__all__ = ["load_script"]

_NEEDS: Final = "-- needs:"
_FILES: Final = resources.files("goncordia_driver_redis.lua")
_NAMES: Final = re.compile(rf"\b(?:{'|'.join(NUMBERS)})\b")


@cache
def _part(name: str) -> str:
    return _FILES.joinpath("lib", f"{name}.lua").read_text("utf-8")


@cache
def load_script(name: str) -> Script:
    """The script of ``lua/<name>.lua``, complete.

    Raises:
        ValueError: its first two lines are not what they have to be.
    """
    text = _FILES.joinpath(f"{name}.lua").read_text("utf-8")
    shebang, needs, body = text.split("\n", 2)
    if not (shebang.startswith("#!lua") and needs.startswith(_NEEDS)):
        raise ValueError(f"{name}.lua: its first lines must be '#!lua …' and '{_NEEDS}…'")
    first, _, parts = needs.removeprefix(_NEEDS).rpartition("|")
    lines = (
        _part("base"),
        *map(_part, first.split()),
        _part("common"),
        "local function main()",
        *map(_part, parts.split()),
        body,
        "end",
        "return main()",
    )
    whole = _NAMES.sub(lambda found: str(NUMBERS[found[0]]), "\n".join(lines))
    script = f"{shebang}\n{whole}".encode()
    sha = hashlib.sha1(script, usedforsecurity=False).hexdigest()
    return Script(name, script, sha, writes="no-writes" not in shebang)
