"""Puts the scripts together: each file with the parts of ``lib/`` that its second line names."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

from goncordia_driver_redis.operations.call import Script

__all__ = ["load_script"]

_NEEDS = "-- needs: "
_FILES = resources.files("goncordia_driver_redis.lua")


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
    parts = map(_part, needs.removeprefix(_NEEDS).split())
    whole = "\n".join((shebang, *parts, body)).encode()
    sha = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    return Script(name, whole, sha, writes="no-writes" not in shebang)
