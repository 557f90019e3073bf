"""A PostgreSQL server and a standby that follows it, for tests of a failover.

::

    primary = PostgresServer.create(find_postgres(), PRIMARY)
    with guarded(primary.run):
        standby = Standby.of(primary)
        with guarded(standby.run):
            ...
            primary.kill()
            standby.promote()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from goncordia_conformance.servers.postgres import TESTS, PostgresServer

__all__ = ["PRIMARY", "Standby"]

PRIMARY: Final[Mapping[str, str]] = {**TESTS, "wal_level": "replica", "max_wal_senders": "4"}
"""Settings of a server that another one may follow."""


@dataclass(frozen=True)
class Standby(PostgresServer):
    """A server that follows another one, until it is promoted.

    Attributes:
        primary: the DSN of the one that it follows.
        name: by which the primary knows it, as in ``synchronous_standby_names``.
    """

    primary: str = ""
    name: str = "standby"

    @classmethod
    def of(cls, primary: PostgresServer) -> Self:
        """Think up a standby of a server that runs; nothing is started."""
        made = cls.create(primary.binaries, primary.settings)
        return cls(made.binaries, made.home, made.port, made.settings, made.user, primary.dsn)

    def _make_data(self, *words: str) -> None:
        """Copy the primary's data, with what is needed to follow it."""
        self._do(
            "pg_basebackup",
            *("--pgdata=data", f"--dbname={self.primary}?application_name={self.name}"),
            *("--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--no-sync"),
            *words,
        )

    def promote(self) -> None:
        """Make it a primary, and wait until it is one.

        Raises:
            RuntimeError: it did not become one; with its last words.
        """
        self._pg_ctl("promote")
