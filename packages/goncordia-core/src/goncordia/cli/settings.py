"""The table ``[tool.goncordia]`` of the ``pyproject.toml`` in the current folder."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from goncordia import _check
from goncordia.errors import ConfigurationError

__all__ = ["FILE", "TABLE", "Settings", "read_settings", "table_of"]

FILE: Final = "pyproject.toml"
TABLE: Final = "tool.goncordia"


class Settings(msgspec.Struct, frozen=True):
    """What the table says, for commands that are not told otherwise.

    Attributes:
        url: the backend.
        registry: where the registry is, such as ``app.jobs:registry``.
    """

    url: str | None = None
    registry: str | None = None


def read_settings() -> Settings:
    """The settings; without file or table there are none.

    Raises:
        ConfigurationError: the file or the table is broken.
    """
    path = Path(FILE)
    try:
        table = table_of(path.read_bytes())
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise ConfigurationError(f"{FILE}: cannot be read: {error.strerror}") from error
    if table is None:
        return Settings()
    _check.known("setting", table, Settings.__struct_fields__, field=f"{FILE}: {TABLE}")
    for name, value in table.items():
        if not isinstance(value, str) or not value:
            _check.refuse(f"{FILE}: {TABLE}.{name}", value, "a string with something in it")
    return Settings(**table)


def table_of(text: bytes) -> dict[str, Any] | None:
    """The table as it stands in a file's text; None: there is none.

    Raises:
        ConfigurationError: the text is no TOML, or something else has the table's name.
    """
    try:
        data = tomllib.loads(text.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{FILE}: it is not TOML: {error}") from None
    found: object = data
    above = FILE
    for name in TABLE.split("."):
        if not isinstance(found, dict):
            _check.refuse(above, found, "a table")
        if name not in found:
            return None
        found = cast("dict[str, object]", found)[name]
        above = f"{FILE}: {name}" if above == FILE else f"{above}.{name}"
    if not isinstance(found, dict):
        _check.refuse(above, found, "a table")
    return cast("dict[str, Any]", found)
