"""Groups on PostgreSQL, where fetches and finishes run side by side.

Each group has a row, made by the first fetch that meets it. Whoever works on a group locks it:

- a fetch, to claim of it (NO KEY UPDATE), and to park of it as well (UPDATE, the stronger one);
- whoever ends a claim of it, so that nobody parks meanwhile (KEY SHARE).

So two fetches never count the same group at once, and no job is parked behind a claim that is just
being ended, whose end would not see it. Those who end claims do not wait for each other, nor do
fetches wait for them, though their transaction be a user's and long. A fetch waits for nobody: what
it does not get it leaves to the next one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from goncordia_sql.ops.groups import Claimable, Groups
from goncordia_sql.postgres.dialect import PostgresDialect
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op
from goncordia_sql.states import Stored

__all__ = ["PostgresGroups"]

_SWEPT_AT_ONCE: Final = 500
"""Groups that one sweep looks at, at most."""
_NEW_AT_ONCE: Final = 100
"""Groups of which one statement makes rows, at most: each takes an advisory lock."""


class PostgresGroups(Groups):
    """See the module."""

    def __init__(self, dialect: PostgresDialect, codec: RowCodec) -> None:
        super().__init__(dialect, codec)
        group, job = dialect.group, dialect.job
        of_names = f"FROM {group} g WHERE g.name = ANY(:names::text[])"
        self._lock_to_park = dialect.sql(f"SELECT g.name {of_names} FOR UPDATE SKIP LOCKED")
        self._lock_to_claim = dialect.sql(f"SELECT g.name {of_names} FOR NO KEY UPDATE SKIP LOCKED")
        self.entering = dialect.sql(f"SELECT g.name {of_names} ORDER BY g.name FOR KEY SHARE")
        """What ends claims of groups runs this: others may claim of them after its commit."""
        # Who does not get the advisory lock leaves the row to the one that has it, and waits not.
        self._create = dialect.sql(f"""
            INSERT INTO {group} (name)
            SELECT n.name FROM unnest(:names::text[]) AS n(name)
            WHERE pg_try_advisory_xact_lock(hashtextextended(n.name, {_salt(dialect.schema)}))
            ON CONFLICT DO NOTHING
            """)
        self._swept_to = ""
        self._next_groups = dialect.sql(f"""
            SELECT g.name, EXISTS (SELECT 1 FROM {job} j WHERE j.group_name = g.name
                                   AND j.state = {Stored.PARKED} OFFSET 0)
            FROM {group} g WHERE g.name > :after ORDER BY g.name LIMIT :most
            """)
        self._idle = dialect.sql(f"""
            SELECT g.name FROM {group} g WHERE NOT EXISTS (
                SELECT 1 FROM {job} j WHERE j.group_name = g.name AND j.state < {Stored.COMPLETED}
                OFFSET 0)
            LIMIT :most FOR UPDATE SKIP LOCKED
            """)
        self._forget = dialect.sql(f"""
            DELETE FROM {group} g WHERE g.name = ANY(:names::text[]) AND NOT EXISTS (
                SELECT 1 FROM {job} j WHERE j.group_name = g.name AND j.state < {Stored.COMPLETED}
                OFFSET 0)
            """)

    def _has_room(self, limit: int, running: int) -> bool:
        """Always: two ends at once each take the other's job for one that still runs."""
        return True

    def claimable(self, names: Iterable[str]) -> Op[Claimable]:
        """See :meth:`Groups.claimable`."""
        wanted = set(names)
        parkable = yield from self._lock(wanted)
        wanted -= parkable
        claimable = set(parkable)
        if wanted:
            claimable |= {row[0] for row in (yield self._lock_to_claim(names=sorted(wanted))).rows}
            wanted -= claimable
        if wanted:
            yield self._create(names=sorted(wanted)[:_NEW_AT_ONCE])
            created = yield from self._lock(wanted)
            parkable |= created
            claimable |= created
        # Counted after the locks are held: by a statement that sees all that was claimed before.
        return Claimable((yield from self.running(sorted(claimable))), parkable)

    def _lock(self, names: Iterable[str]) -> Op[set[str]]:
        return {row[0] for row in (yield self._lock_to_park(names=sorted(names))).rows}

    def enter(self, names: Iterable[str]) -> Op[None]:
        """See :meth:`Groups.enter`."""
        yield self.entering(names=sorted(names))

    def sweep(self) -> Op[None]:
        """Bring back parked jobs of groups that have room; a few groups each time.

        Whoever ends a claim brings back the next job, unless it is held locked at that moment, or
        hidden from a transaction that began before it came (REPEATABLE READ). It is found here.
        """
        found = yield self._next_groups(after=self._swept_to, most=_SWEPT_AT_ONCE)
        self._swept_to = found.rows[-1][0] if len(found.rows) == _SWEPT_AT_ONCE else ""
        names = yield from self._lock([name for name, has_parked in found.rows if has_parked])
        if not names:
            return
        running = yield from self.running(sorted(names))
        back: list[Any] = []
        for name in sorted(names):
            for group_class in (yield from self._classes(name)):
                room = group_class.limit - running[name]
                if room > 0:
                    back += yield from self._first(group_class, room)
        yield from self._bring_back(back)

    def forget(self, limit: int) -> Op[None]:
        """Delete the rows of groups that have no unfinished jobs."""
        idle = [row[0] for row in (yield self._idle(most=limit)).rows]
        if idle:
            # Seen once more, now that nobody can claim of them.
            yield self._forget(names=idle)


def _salt(schema: str) -> int:
    """Keeps the advisory locks of several schemas apart, as far as a number can."""
    return int.from_bytes(schema.encode()[:7].rjust(7, b"\0"), "big")
