"""Rule 8: what a fetch costs does not depend on how much else there is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, TypeAlias
from uuid import UUID

import pytest

from goncordia.driver import After, Change, QueueFetch
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, Session
from goncordia_conformance.marks import not_proved

__all__ = ["CostOf", "FlatFetchTests"]

CostOf: TypeAlias = Callable[[Callable[[], Awaitable[object]]], Awaitable[int]]
"""Makes the call, and tells what it cost: rows or pages read, instructions run, statements times
the rows in their plans; anything that grows when more is looked at, and no time."""

FEW = 100
BOUND = 3
"""By how much a fetch may cost more among many than among few: trees grow a little deeper."""

TAKEN = 10
"""How many jobs the measured fetch gets."""

GROUPS = 100
"""Over how many full groups the parked jobs are spread."""

BURDENS: dict[str, dict[str, Any]] = {
    "backlog": {},
    "finished": {},
    "scheduled": {"run_at": After(86400)},
    "scheduled-higher": {"run_at": After(86400), "priority": 9},
    "parked": {"group_limit": 1, "priority": 9},
    "other-kinds": {"kind": "other", "priority": 9},
    "other-queues": {"queue": "other", "priority": 9},
}
CAPABILITY = {"parked": "groups", "other-kinds": "fetch_kinds"}


class FlatFetchTests(Conformance, rule=8):
    """Measured without a clock: by what the backend counts.

    Attributes:
        many: among how many rows; fewer only for a backend that takes minutes to hold so many.
    """

    many: ClassVar[int] = 100_000

    @pytest.fixture
    def cost_of(self) -> CostOf:
        """For the driver's author: makes a call on the ``lab``'s driver, and tells its cost."""
        not_proved("flat fetch", "no fixture cost_of")

    @pytest.mark.parametrize("burden", BURDENS)
    async def test_fetch_stays_flat(self, lab: Lab, cost_of: CostOf, burden: str) -> None:
        needed = CAPABILITY.get(burden)
        if needed and not getattr(lab.capabilities, needed):
            pytest.skip(f"not claimed: {needed} = False")
        session = await lab.session()
        if burden == "parked":
            await _fill_groups(lab, session)
        costs: list[tuple[int, int]] = []
        for rows in (FEW, self.many - FEW):
            await _burden(lab, burden, rows)
            if burden == "parked":
                await _pass_over(session)
            costs.append(await _costs(lab, session, cost_of, burden))
        (found, nothing), (found_late, nothing_late) = costs
        assert 0 < found_late <= BOUND * found, f"a fetch of {TAKEN} jobs: {found}, {found_late}"
        assert nothing_late <= BOUND * nothing, f"a fetch of none: {nothing}, {nothing_late}"


async def _costs(lab: Lab, session: Session, cost_of: CostOf, burden: str) -> tuple[int, int]:
    """The cost of a fetch that gets its jobs, and of one that finds nothing to claim."""
    await lab.insert(*(lab.job() for _ in range(TAKEN)))
    found = await _cost(session, cost_of, TAKEN)
    # Among a backlog there is always something.
    nothing = 0 if burden == "backlog" else await _cost(session, cost_of, 0)
    return found, nothing


async def _pass_over(session: Session) -> None:
    """A job of a full group is parked by the first fetch that passes over it, at the latest."""
    more = True
    while more:
        kinds = {"work": 1} if session.executor.capabilities.fetch_kinds else None
        result = await session.executor.fetch(session.request(1, QueueFetch("default", 1, kinds)))
        assert result.jobs == []
        more = result.more


async def _cost(session: Session, cost_of: CostOf, expected: int) -> int:
    kinds = {"work": TAKEN} if session.executor.capabilities.fetch_kinds else None
    request = session.request(TAKEN, QueueFetch("default", TAKEN, kinds))
    cost = await cost_of(lambda: session.executor.exchange([], request))
    claimed = await session.executor.held(session.id, request.fetch_no, TAKEN + 1)
    assert len(claimed) == expected
    return cost


async def _burden(lab: Lab, burden: str, rows: int) -> None:
    """So many more rows that the fetch has no business with."""
    size = min(lab.capabilities.max_batch, 5000)
    for start in range(0, rows, size):
        fields = BURDENS[burden]
        numbers = range(start, min(start + size, rows))
        if burden == "parked":
            jobs = [lab.job(**fields, group=f"g{n % GROUPS}") for n in numbers]
        else:
            jobs = [lab.job(**fields) for _ in numbers]
        results = await lab.executor.insert_many(jobs)
        if burden == "finished":
            await _finish(lab, [result.id for result in results])
    await lab.let_appear()


async def _finish(lab: Lab, job_ids: list[UUID]) -> None:
    answers = await lab.executor.change_many([Change(job_id, "cancel") for job_id in job_ids])
    assert {answer.status for answer in answers} == {"CHANGED"}


async def _fill_groups(lab: Lab, session: Session) -> None:
    """One running job in each group."""
    jobs = [lab.job(group=f"g{n}", group_limit=1) for n in range(GROUPS)]
    await lab.insert(*jobs)
    assert len(await session.fetch(GROUPS)) == GROUPS
