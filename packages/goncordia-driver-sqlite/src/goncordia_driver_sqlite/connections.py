"""Paths, and connections of our own."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from goncordia.errors import ConfigurationError

__all__ = [
    "MINIMUM",
    "Synchronous",
    "check_file",
    "check_library",
    "connect",
    "database_path",
    "log_path",
]

Synchronous: TypeAlias = Literal["FULL", "NORMAL"]

MINIMUM: Final = (3, 37, 0)
"""The oldest SQLite that has what the statements use."""

_SCHEME: Final = "sqlite://"
_CACHED_STATEMENTS: Final = 256
# Pages of the write-ahead log at which it is copied back; 4 times SQLite's default.
_CHECKPOINT_PAGES: Final = 4000
# Milliseconds that a statement waits inside SQLite. Longer waits are ours, with shorter naps.
_NAP: Final = 20


def database_path(path: object) -> str:
    """The absolute path of the database file that ``path`` names.

    Args:
        path: a path, or ``sqlite:///relative`` or ``sqlite:////absolute``.

    Raises:
        ConfigurationError: it names no file.
    """
    try:
        text = os.fsdecode(cast("str | os.PathLike[str]", path))
    except TypeError:
        raise ConfigurationError(
            f"path: {path!r} is not a path or a URL like 'sqlite:///jobs.db'"
        ) from None
    if text.lower().startswith(_SCHEME):
        text = _path_of_url(text)
    if text in {"", ":memory:"} or text.startswith("file:"):
        raise ConfigurationError(
            f"path: {text!r} is not a database file. Jobs in memory are what "
            "goncordia.memory.MemoryDriver is for; for a test of SQLite use a temporary file"
        )
    if "\0" in text:
        raise ConfigurationError(f"path: {text!r} has a NUL character in it")
    return str(Path(text).absolute())


def _path_of_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc:
        raise ConfigurationError(
            f"url: {url!r} names a host, {parts.netloc!r}: write sqlite:///relative/path or "
            "sqlite:////absolute/path"
        )
    if parts.query or parts.fragment:
        raise ConfigurationError(f"url: {url!r} has options; give them to SqliteDriver in code")
    path = unquote(parts.path)
    return path.removeprefix("/")


def log_path(path: str) -> str:
    """The write-ahead log of a database: beside the file that the path leads to."""
    return f"{os.path.realpath(path)}-wal"


def check_library() -> None:
    """Refuse an SQLite that is too old.

    Raises:
        ConfigurationError: it is older than ``MINIMUM``.
    """
    if sqlite3.sqlite_version_info < MINIMUM:
        needed = ".".join(map(str, MINIMUM))
        raise ConfigurationError(
            f"sqlite3: this Python has SQLite {sqlite3.sqlite_version}; {needed} or newer is needed"
        )


def check_file(path: str) -> bool:
    """Whether the database file is there already.

    Raises:
        ConfigurationError: it could not be used: a folder, not writable, or in no folder.
    """
    folder = os.path.dirname(path)
    if os.path.isdir(path):
        raise ConfigurationError(f"path: {path!r} is a folder, not a database file")
    if not os.path.isdir(folder):
        raise ConfigurationError(f"path: the folder of {path!r} does not exist")
    there = os.path.exists(path)
    if there and not os.path.isfile(path):
        raise ConfigurationError(f"path: {path!r} is not a file")
    if there and not os.access(path, os.R_OK | os.W_OK):
        raise ConfigurationError(f"path: {path!r} cannot be read and written by this user")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"path: the folder of {path!r} cannot be written by this user, and SQLite keeps files "
            "beside the database"
        )
    return there


def connect(
    path: str, synchronous: Synchronous, busy_timeout: float, *, create: bool = False
) -> sqlite3.Connection:
    """A connection of ours: in autocommit, usable from any thread, one at a time.

    Args:
        path: the absolute path.
        synchronous: see :class:`SqliteDriver`.
        busy_timeout: seconds to wait now; what is run on it waits for a moment only.
        create: make the file if it is not there.
    """
    uri = f"{Path(path).as_uri()}?mode={'rwc' if create else 'rw'}"
    connection = sqlite3.connect(
        uri,
        uri=True,
        timeout=busy_timeout,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_CACHED_STATEMENTS,
    )
    try:
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA busy_timeout = {_NAP}")
    except BaseException:
        connection.close()
        raise
    return connection
