"""The whole machine: how it begins, and the look at everything after each step."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from goncordia.driver import BaseExecutor, JobRow, JobState, ListFilter
from goncordia_conformance.machine import draws
from goncordia_conformance.machine.base import same, same_rows
from goncordia_conformance.machine.draws import LEASES, JobSpec
from goncordia_conformance.machine.sessions import SessionSteps

__all__ = ["Machine"]


class Machine(SessionSteps):
    """All steps together."""

    @initialize(
        specs=st.lists(draws.jobs, min_size=3, max_size=8),
        leases=st.lists(st.sampled_from(LEASES), min_size=2, max_size=3),
    )
    def begin(self, specs: list[JobSpec], leases: list[float]) -> None:
        """A few jobs and sessions to begin with."""
        for lease in leases:
            self.session_open(lease)
        self.insert(specs)

    @invariant()
    def all_is_the_same(self) -> None:
        """Jobs, field by field, sessions, queues, stats and records."""
        found, overview = self.ask_driver(self._everything)
        expected, expected_overview = self.ask_model(self._everything)
        same_rows(found, expected, in_order=True)
        same(overview, expected_overview)

    async def _everything(self, executor: BaseExecutor) -> tuple[list[JobRow], object]:
        infos = await executor.session_list()
        stats = await executor.queue_stats()
        return await self.all_rows(executor), (
            {info.id: (info.open, info.worker_id, info.lease) for info in infos},
            [queue.name for queue in await executor.queue_list() if queue.paused],
            [s for s in stats if s.available or s.scheduled or s.retryable or s.running],
            [(record.name, record.value) for record in await executor.record_list("r/")],
        )

    @rule(
        states=st.frozensets(st.sampled_from(list(JobState)), max_size=3),
        kinds=st.frozensets(st.sampled_from("kl"), max_size=1),
        queues=st.frozensets(st.sampled_from("ab"), max_size=1),
        tags=st.frozensets(st.just("t"), max_size=1),
        group=st.sampled_from([None, "g", "h"]),
        limit=st.integers(1, 9),
    )
    def look_by_filter(self, limit: int, **wanted: Any) -> None:
        """The jobs of a filter are the same, and as many are counted."""
        claimed = self.capabilities.list_filters
        where = ListFilter(**{name: value for name, value in wanted.items() if name in claimed})

        async def all_ids(executor: BaseExecutor) -> list[UUID]:
            page, found = None, list[UUID]()
            while True:
                got = await executor.list_jobs(where, page, limit)
                found += [row.id for row in got.jobs]
                page = got.next
                if page is None:
                    return found

        self.ask_both(all_ids)
        self.ask_both(lambda executor: executor.count(where))
