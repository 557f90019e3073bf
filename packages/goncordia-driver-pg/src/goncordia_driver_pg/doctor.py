"""What ``goncordia doctor`` says of a PostgreSQL database, and what a driver refuses to open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from goncordia.driver import Finding
from goncordia.errors import ConfigurationError
from goncordia_driver_pg.errors import ROLES
from goncordia_sql import Op
from goncordia_sql.postgres import PostgresDialect

__all__ = ["Server", "examine", "server"]

_OLDEST: Final = 140000
_LONG: Final = 600.0


class Server(NamedTuple):
    """What is known of a server at the first contact.

    Attributes:
        version: such as 150018.
        encoding: of the database.
        replica: it is one, so nothing can be written.
    """

    version: int
    encoding: str
    replica: bool

    def check(self) -> None:
        """Refuse what the driver cannot work with.

        Raises:
            ConfigurationError: the server is too old.
        """
        if self.version < _OLDEST:
            raise ConfigurationError(
                f"dsn: the server is PostgreSQL {self.version // 10000}; Goncordia needs 14 or "
                "newer"
            )


def server(dialect: PostgresDialect) -> Op[Server]:
    """Ask the server what it is."""
    sql = dialect.sql("""
        SELECT current_setting('server_version_num')::integer, current_setting('server_encoding'),
            pg_is_in_recovery()
        """)
    version, encoding, replica = (yield sql.alone()).rows[0]
    return Server(version, encoding, replica)


def examine(dialect: PostgresDialect, found: Server) -> Op[list[Finding]]:
    """What there is to say of a migrated database.

    Args:
        dialect: the driver's.
        found: what is known of the server already.
    """
    findings = list(_server(found))
    settings = dialect.sql("""
        SELECT current_setting('autovacuum'), current_setting('track_counts'),
            current_setting('fsync'), current_setting('synchronous_commit'), current_user
        """)
    *switches, role = (yield settings.alone()).rows[0]
    findings += _switches(switches)
    tables = dialect.sql("""
        SELECT c.relname::text, 'autovacuum_enabled=false' = ANY(coalesce(c.reloptions, '{}')),
            has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT'),
            has_table_privilege(c.oid, 'UPDATE'), has_table_privilege(c.oid, 'DELETE'),
            has_any_column_privilege(c.oid, 'SELECT')
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = :schema AND c.relkind = 'r' ORDER BY c.relname
        """)
    findings += _tables((yield tables.alone(schema=dialect.schema)).rows, dialect.schema, role)
    old = dialect.sql("""
        SELECT count(*), max(extract(epoch FROM clock_timestamp() - xact_start))::float8
        FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND xact_start < clock_timestamp() - make_interval(secs => :seconds::float8)
        """)
    count, longest = (yield old.alone(seconds=_LONG)).rows[0]
    if count:
        findings.append(
            Finding(
                "warning",
                f"{count} transactions have been open for more than {_LONG / 60:.0f} minutes, the "
                f"longest for {longest / 60:.0f}: meanwhile vacuum can remove nothing, and every "
                "fetch reads over what is dead. Look at pg_stat_activity.xact_start",
            )
        )
    return findings


def _server(found: Server) -> Iterator[Finding]:
    if found.encoding != "UTF8":
        yield Finding(
            "error",
            f"the database's encoding is {found.encoding}, which cannot hold every text: use a "
            "database with the encoding UTF8",
        )
    if found.replica:
        yield Finding(
            "error",
            "the server is a replica, where nothing can be written: connect to the primary "
            "(target_session_attrs=read-write in the DSN)",
        )


def _switches(values: Sequence[str]) -> Iterator[Finding]:
    autovacuum, track_counts, fsync, synchronous_commit = values
    if "off" in {autovacuum, track_counts}:
        yield Finding(
            "error",
            "autovacuum is off (autovacuum or track_counts): dead rows pile up, and every fetch "
            "becomes slower. Turn it on",
        )
    if fsync == "off":
        yield Finding("error", "fsync is off: a crash of the machine may destroy the database")
    if synchronous_commit == "off":
        yield Finding(
            "warning",
            "synchronous_commit is off: a crash of the server may lose the jobs and results of the "
            "last moment",
        )


_RIGHTS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")
_READ_ONLY: Final = frozenset({"migration", "queue"})
"""Who works only reads these: a queue is written to by who pauses it."""
_DISPENSABLE: Final = {
    "INSERT on job": "to enqueue (handlers, cron)",
    "DELETE on job": "to delete finished ones (retention)",
}
"""What some who work do without."""


def _tables(rows: Sequence[Sequence[Any]], schema: str, role: str) -> Iterator[Finding]:
    missing: list[str] = []
    enqueues = True
    for name, unvacuumed, *rights, reads_some in rows:
        if unvacuumed:
            yield Finding("error", f"autovacuum is turned off for the table {schema}.{name}")
        needed = _RIGHTS[:1] if name in _READ_ONLY else _RIGHTS
        has = dict(zip(_RIGHTS, rights, strict=True))
        missing += [f"{right} on {name}" for right in needed if not has[right]]
        if name == "job":
            # Who only enqueues need not be able to read the jobs' args.
            enqueues = has["INSERT"] and reads_some
    if not missing:
        return
    where = f"which rights are for what is in {ROLES}"
    if _DISPENSABLE.keys() >= set(missing):
        without = ", ".join(f"{right}, {_DISPENSABLE[right]}" for right in missing)
        yield Finding(
            "warning", f"the role {role!r} may work on jobs, but lacks {without}; {where}"
        )
        return
    lacks = f"{', '.join(missing)}; {where}"
    if enqueues:
        yield Finding(
            "warning", f"the role {role!r} may enqueue, but not work on jobs: it lacks {lacks}"
        )
    else:
        yield Finding(
            "error", f"the role {role!r} may neither enqueue nor work on jobs: it lacks {lacks}"
        )
