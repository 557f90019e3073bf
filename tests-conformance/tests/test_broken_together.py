"""Drivers that break what several pools or schedulers rely on: the test meant for it must fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from goncordia.clock import SystemClock
from goncordia.driver import (
    FetchRequest,
    FetchResult,
    Finish,
    InsertResult,
    NewJob,
    Outcome,
    PruneRequest,
    PutResult,
    Record,
)
from goncordia.ids import JobIds
from goncordia.memory import Store
from goncordia.memory.executor import MemoryExecutor
from goncordia_conformance.lab import claim_of
from goncordia_conformance.rules.leadership import LeadershipTests
from goncordia_conformance.rules.limits import LimitTests
from goncordia_conformance.selftest import BrokenFetch, caught_by

new_id = JobIds(SystemClock())


class _PutsWhateverTheVersion(MemoryExecutor):
    """Answers after a turn of the loop, as a network does, and writes over what others wrote."""

    async def record_get(self, name: str, /) -> Record | None:
        found = await super().record_get(name)
        await asyncio.sleep(0)
        return found

    async def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes, /
    ) -> PutResult:
        await asyncio.sleep(0)
        found = await super().record_get(name)
        version = 0 if found is None else found.version
        return await super().record_put(name, value, version, token)


@caught_by(LimitTests, "test_pools_share_a_rate")
class GivesTokensTwice(_PutsWhateverTheVersion):
    pass


@caught_by(LeadershipTests, "test_one_of_many_leads")
class LetsAllLead(_PutsWhateverTheVersion):
    pass


@caught_by(LimitTests, "test_pools_share_a_rate_by_key")
class ReleasesForNow(BrokenFetch):
    """Forgets when a job that is given back shall come again."""

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        return await super().finish_many(
            [replace(f, when=None) if f.to == "release" else f for f in finishes]
        )


@caught_by(LimitTests, "test_a_hot_key_keeps_no_other_waiting")
class ServesOneKeyAfterTheOther(BrokenFetch):
    async def fetch(self, request: FetchRequest, /) -> FetchResult:
        result = await super().fetch(request)
        others = [row for row in result.jobs if row.group != result.jobs[0].group]
        await self.finish_many([Finish(claim_of(row), "release") for row in others])
        kept = [row for row in result.jobs if row not in others]
        return replace(result, jobs=kept, more=result.more or bool(others))


@caught_by(LeadershipTests, "test_what_is_due_runs_once_though_answers_are_lost")
class KnowsNoIdAgain(MemoryExecutor):
    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        def anew(store: Store, _: datetime) -> list[NewJob]:
            return [job if store.job(job.id) is None else replace(job, id=new_id()) for job in jobs]

        return await super().insert_many(self._call(anew))


@caught_by(LeadershipTests, "test_one_pool_deletes_old_jobs_and_another_follows")
class PrunesWhatIsYoung(MemoryExecutor):
    async def prune(self, request: PruneRequest, /) -> int:
        everything = await self.now()
        return await super().prune(replace(request, discarded=everything))
