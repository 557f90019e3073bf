"""Paths, and connections of our own."""

from __future__ import annotations

import os
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

from goncordia.driver.connections.forks import of_this_process
from goncordia.errors import ConfigurationError

__all__ = [
    "FORKING",
    "MINIMUM",
    "Synchronous",
    "check_file",
    "check_library",
    "connect",
    "database_path",
    "identity",
    "log_path",
    "refuse_inherited",
]

Synchronous: TypeAlias = Literal["FULL", "NORMAL"]
FileId: TypeAlias = tuple[int, int]

MINIMUM: Final = (3, 37, 0)
"""The oldest SQLite that has what the statements use."""

_SCHEME: Final = "sqlite://"
FORKING: Final = "close it before the fork, and make a new one there"
"""What to do in place of using a driver in a fork: see :func:`refuse_inherited`."""

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


class _Connection(sqlite3.Connection):
    """A connection of ours, of which forks of this process know."""

    def __init__(self, *args: Any, file: FileId | None, **settings: Any) -> None:
        self.file = file
        self.pid = os.getpid()
        _open.add(of_this_process(self))
        super().__init__(*args, **settings)

    def close(self) -> None:
        super().close()
        _open.discard(self)


_open: Final[WeakSet[_Connection]] = WeakSet()
_inherited: Final[dict[FileId, int]] = {}
"""The files that were open when this process was forked, and in which process."""


def _note_inherited() -> None:
    _inherited.update({each.file: each.pid for each in _open if each.file is not None})
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_inherited)


def identity(path: str) -> FileId | None:
    """Which file is at the path; None: there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def refuse_inherited(path: str) -> None:
    """Refuse a file that was open when this process was forked.

    SQLite notes in memory which locks its process holds, and a fork has these notes and not the
    locks: it waits for ever for a writer that is not in it, or writes into a log that its parent
    has deleted.

    Raises:
        ConfigurationError: it was open.
    """
    file = identity(path) if _inherited else None
    if file in _inherited:
        raise ConfigurationError(
            f"path: {path!r} was open in process {_inherited[file]} when {os.getpid()} was forked "
            "from it, and SQLite would lose jobs here: close the driver before the fork, or start "
            "the process without one (multiprocessing: 'spawn' or 'forkserver')"
        )


def connect(
    path: str, synchronous: Synchronous, busy_timeout: float, *, create: bool = False
) -> sqlite3.Connection:
    """A connection of ours: in autocommit, usable from any thread, one at a time.

    Args:
        path: the absolute path.
        synchronous: see :class:`SqliteDriver`.
        busy_timeout: seconds to wait now; what is run on it waits for a moment only.
        create: make the file if it is not there.

    Raises:
        ConfigurationError: the file was open when this process was forked.
    """
    refuse_inherited(path)
    # It is the class, but for what is bound to it.
    factory: Any = partial(_Connection, file=identity(path))
    uri = f"{Path(path).as_uri()}?mode={'rwc' if create else 'rw'}"
    connection: _Connection = sqlite3.connect(
        uri,
        uri=True,
        factory=factory,
        timeout=busy_timeout,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_CACHED_STATEMENTS,
    )
    try:
        connection.file = identity(path)
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA busy_timeout = {_NAP}")
    except BaseException:
        connection.close()
        raise
    return connection
