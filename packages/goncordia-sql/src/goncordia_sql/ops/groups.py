"""Groups: who is parked and who comes back when a claim ends. Rule 7 of the contract.

A class of a group is what its jobs of one queue, one kind and one limit are. What is kept true:
while a group runs ``r`` jobs, the first ``limit - r`` waiting jobs of each of its classes are not
parked. So whatever lowers ``r`` by one, or takes a job away that was not parked, brings back the
first parked job of each class that has room. A fetch parks what it meets without room, and an
insert what comes after enough others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.base import Topic, as_text
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op
from goncordia_sql.states import Stored

__all__ = ["Claimable", "Groups"]


class Claimable(NamedTuple):
    """What a fetch may do with groups.

    Attributes:
        running: the groups of which it may claim, and how many jobs of each run.
        parkable: those of them of which it may park.
    """

    running: Mapping[str, int]
    parkable: Collection[str]


class _Class(NamedTuple):
    name: str
    queue: str
    kind: str
    limit: int


class Groups(Topic):
    """What fetch, finish, change and session operations ask about groups."""

    def __init__(self, dialect: Dialect, codec: RowCodec) -> None:
        super().__init__(dialect, codec)
        job = dialect.job
        self._running = dialect.sql(f"""
            SELECT {dialect.bytes_of("k.value")}, (SELECT count(*) FROM {job} j
                             WHERE j.group_name = k.value AND j.state = {Stored.RUNNING})
            FROM {dialect.each_text(":names")} AS k
            """)
        self._next_class = dialect.sql(f"""
            SELECT {dialect.bytes_of("queue")}, {dialect.bytes_of("kind")}, group_limit FROM {job}
            WHERE group_name = :name AND state = {Stored.PARKED}
            AND (queue, kind, group_limit) > (:queue, :kind, :group_limit)
            ORDER BY queue, kind, group_limit LIMIT 1
            """)
        self._first_parked = dialect.sql(f"""
            SELECT j.id FROM {job} j
            WHERE j.group_name = :name AND j.state = {Stored.PARKED}
            AND j.queue = :queue AND j.kind = :kind AND j.group_limit = :group_limit
            ORDER BY j.nice, j.run_at, j.id LIMIT :most {dialect.lock_free("j")}
            """)
        self._set_state = dialect.sql(f"""
            UPDATE {job} SET state = :state
            WHERE id IN (SELECT k.id FROM {dialect.each_id(":ids")} AS k)
            """)

    def running(self, names: Iterable[str]) -> Op[dict[str, int]]:
        """How many jobs of each of these groups run."""
        found = yield self._running(names=self.dialect.texts(names))
        return {as_text(name): count for name, count in found.rows}

    def claimable(self, names: Iterable[str]) -> Op[Claimable]:
        """The groups of which a fetch may claim, and park.

        Where transactions run side by side, those that others are claiming of are left out.
        """
        counts = yield from self.running(names)
        return Claimable(counts, counts.keys())

    def enter(self, names: Iterable[str]) -> Op[None]:
        """Keep others from parking jobs of these groups until claims of them are ended."""
        yield from ()

    def park(self, raw_ids: list[Any]) -> Op[None]:
        """Take ready jobs out of the fetch's way."""
        yield self._set_state(state=Stored.PARKED.value, ids=self.dialect.raw_ids(raw_ids))

    def unpark(self, freed: Mapping[str, int]) -> Op[None]:
        """Bring parked jobs back, after so many jobs of each of these groups were taken away."""
        back: list[Any] = []
        running: dict[str, int] = {}
        for name, count in freed.items():
            for group_class in (yield from self._classes(name)):
                if not running:
                    running = yield from self.running(freed)
                if self._has_room(group_class.limit, running[name]):
                    back += yield from self._first(group_class, count)
        yield from self._bring_back(back)

    def _has_room(self, limit: int, running: int) -> bool:
        """Whether a job of a class may come back: one too many is parked again by a fetch."""
        return running < limit

    def _classes(self, name: str) -> Op[list[_Class]]:
        """The classes of a group that have parked jobs."""
        classes: list[_Class] = []
        last = _Class(name, "", "", -1)
        while True:
            found = yield self._next_class(
                name=name, queue=last.queue, kind=last.kind, group_limit=last.limit
            )
            if not found.rows:
                return classes
            queue, kind, limit = found.rows[0]
            last = _Class(name, as_text(queue), as_text(kind), limit)
            classes.append(last)

    def _first(self, group_class: _Class, most: int) -> Op[list[Any]]:
        """The first parked jobs of a class."""
        first = yield self._first_parked(
            name=group_class.name,
            queue=group_class.queue,
            kind=group_class.kind,
            group_limit=group_class.limit,
            most=most,
        )
        return [raw_id for (raw_id,) in first.rows]

    def _bring_back(self, raw_ids: list[Any]) -> Op[None]:
        if raw_ids:
            yield self._set_state(state=Stored.READY.value, ids=self.dialect.raw_ids(raw_ids))

    @staticmethod
    def count(names: Iterable[str | None]) -> Counter[str]:
        """How often each group is among these; jobs without a group do not count."""
        return Counter(name for name in names if name is not None)
