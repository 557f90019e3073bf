"""What the bare ``sqlite3`` does for the same durable effect, with the fewest statements.

The table is the driver's own, made by its migration: the same columns, the same indexes. An insert
names only the columns that have to be given. Each job's args are encoded by msgspec, its id is 16
bytes that grow. Nothing is checked, nobody is woken, no unique key or group is known.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from goncordia_bench.payload import QUEUE, Email
from goncordia_bench.probes.durability import Synchronous
from goncordia_sql.states import Hold, Stored

__all__ = ["Floor", "chunks"]

# What an insert writes into the columns that have to be given: SQL, or a value of each job's.
_GIVEN: Final = {
    "id": ":id",
    "state": f"{Stored.READY}",
    "queue": f"'{QUEUE}'",
    "nice": "0",
    "run_at": ":now",
    "kind": f"'{Email.kind}'",
    "group_limit": "0",
    "unique_hold": f"{Hold.ACTIVE}",
    "created_at": ":now",
    "content": "'json'",
    "payload_version": "1",
    "args": ":args",
}
_COMPLETE: Final = f"""
    UPDATE goncordia_job SET state = {Stored.COMPLETED}, finished_at = ?
    WHERE state = {Stored.RUNNING} AND session = ? AND fetch_no = ?
    """
_CLAIM: Final = f"""
    UPDATE goncordia_job SET state = {Stored.RUNNING}, attempt = attempt + 1, session = ?,
        fetch_no = ?, claimed_at = ?
    WHERE id IN (SELECT id FROM goncordia_job WHERE state = {Stored.READY} AND queue = '{QUEUE}'
        AND run_at <= ? ORDER BY nice, run_at, id LIMIT ?)
    RETURNING args
    """
_SESSION: Final = bytes(16)


class Floor:
    """One connection of the bare library.

    Args:
        path: the database, migrated.
        synchronous: FULL or NORMAL.
    """

    def __init__(self, path: Path, synchronous: Synchronous) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute(f"PRAGMA synchronous = {synchronous}")
        # As the driver's connections have it.
        self.connection.execute("PRAGMA wal_autocheckpoint = 4000")
        self._insert = self._insert_statement()
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(Email).decode
        self._last_id = time.time_ns() << 60

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    # ---------------------------------------------------------------- inserting

    def _insert_statement(self) -> str:
        columns = self.connection.execute("PRAGMA table_info(goncordia_job)").fetchall()
        needed = [name for _, name, _, not_null, default, _ in columns if not_null and not default]
        values = [_GIVEN[name] for name in needed]
        return f"INSERT INTO goncordia_job ({', '.join(needed)}) VALUES ({', '.join(values)})"

    def _rows(self, jobs: Iterable[Email]) -> Iterator[tuple[Any, ...]]:
        for job in jobs:
            self._last_id += 1
            now = time.time_ns() // 1000
            # In the order in which the parameters first appear.
            yield self._last_id.to_bytes(16, "big"), now, self._encode(job).decode()

    def insert_one_by_one(self, jobs: Iterable[Email]) -> None:
        """One INSERT for each job, each committed by itself."""
        execute = self.connection.execute
        for row in self._rows(jobs):
            execute(self._insert, row)

    def insert_together(self, jobs: Iterable[Email]) -> None:
        """All of them by one ``executemany`` in one transaction."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(self._insert, self._rows(jobs))
        self.connection.execute("COMMIT")

    # ---------------------------------------------------------------- draining

    def drain(self, batch: int) -> int:
        """Work everything off; how many jobs there were.

        Each transaction completes what the one before it claimed and claims the next, so many at a
        time, with one UPDATE each. A job is worked by decoding its args.
        """
        execute, decode = self.connection.execute, self._decode
        done = number = 0
        while True:
            number += 1
            now = time.time_ns() // 1000
            execute("BEGIN IMMEDIATE")
            execute(_COMPLETE, (now, _SESSION, number - 1))
            claimed = execute(_CLAIM, (_SESSION, number, now, now, batch)).fetchall()
            execute("COMMIT")
            if not claimed:
                return done
            for (args,) in claimed:
                decode(args)
            done += len(claimed)


def chunks(jobs: Iterable[Email], size: int) -> Iterator[list[Email]]:
    """The jobs, so many at a time."""
    rest = iter(jobs)
    while chunk := list(islice(rest, size)):
        yield chunk
