"""A PostgreSQL server whose data is on a small file system of its own, which can be filled.

Its log of writes ahead is elsewhere: without room for that, the server stops.
"""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from goncordia_conformance.servers.postgres import PostgresServer
from goncordia_conformance.servers.process import NotHereError

__all__ = ["FullDiskServer"]

_PIECE = 1 << 16


@dataclass(frozen=True)
class FullDiskServer(PostgresServer):
    """A server that has so much room, in memory. Only who may mount can make it, as root may.

    Attributes:
        megabytes: the size of the file system; a new server takes about 45.
    """

    megabytes: int = 128

    @contextmanager
    def run(self) -> Generator[str, None, None]:
        """See :meth:`PostgresServer.run`.

        Raises:
            NotHereError: this user may not mount a file system here.
        """
        with super().run() as dsn:
            try:
                yield dsn
            finally:
                self.free()
                self.stop("immediate")
                _command("umount", str(self._data))

    def _make_data(self, *words: str) -> None:
        self._data.mkdir(mode=0o700)
        try:
            _command(
                "mount", "-t", "tmpfs", "-o", f"size={self.megabytes}m", "goncordia", self._data
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise NotHereError("no file system can be mounted here") from error
        self._data.chmod(0o700)
        if self.user is not None:
            shutil.chown(self._data, self.user)
        super()._make_data(f"--waldir={self.home / 'wal'}", *words)

    @property
    def _data(self) -> Path:
        return self.home / "data"

    @property
    def _filler(self) -> Path:
        return self._data / "filler"

    def fill(self) -> None:
        """Leave no room."""
        with self._filler.open("wb", buffering=0) as file:
            for size in (_PIECE, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self) -> None:
        """Give the room back."""
        self._filler.unlink(missing_ok=True)


def _command(*words: str | Path) -> None:
    subprocess.run(words, check=True, capture_output=True)
