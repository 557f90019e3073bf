"""What a fetch costs does not depend on what else is there: counted in commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goncordia.driver import After, Change, Finish, ListFilter, PruneRequest, QueueFetch
from goncordia_conformance.servers.redis_monitor import Monitor
from goncordia_driver_redis.wire.layout import NUMBERS

MANY = 3000
LATER = After(1000)


def _parked(bare: Any) -> None:
    """Behind full groups."""
    bare(bare.ops.insert_many([bare.job(group=f"g{n}", group_limit=1) for n in range(20)]))
    assert len(bare.claim(20)) == 20
    _many(bare, lambda n: {"group": f"g{n % 20}", "group_limit": 1})


def _many(bare: Any, fields: Callable[[int], dict[str, Any]]) -> list[Any]:
    jobs = [bare.job(**fields(n)) for n in range(MANY)]
    for start in range(0, MANY, 1000):
        bare(bare.ops.insert_many(jobs[start : start + 1000]))
    return [job.id for job in jobs]


def _finished(bare: Any) -> None:
    ids = _many(bare, lambda _: {})
    bare(bare.ops.change_many([Change(each, "cancel") for each in ids]))


BURDENS: dict[str, Callable[[Any], object]] = {
    "scheduled": lambda bare: _many(bare, lambda _: {"run_at": LATER}),
    "scheduled, of higher priorities": lambda bare: _many(
        bare, lambda n: {"run_at": LATER, "priority": 1 + n % 9}
    ),
    "backlog of lower priority": lambda bare: _many(bare, lambda _: {"priority": -1}),
    "other queues": lambda bare: _many(bare, lambda n: {"queue": f"q{n % 50}"}),
    "finished": _finished,
    "parked": _parked,
    "running": lambda bare: (_many(bare, lambda _: {}), [bare.claim(1000) for _ in range(3)]),
}


@pytest.mark.parametrize("burden", BURDENS)
def test_a_fetch_stays_flat(bare: Any, burden: str) -> None:
    bare.open()
    queue = QueueFetch("default", 5, {"work": 5})

    def cost() -> int:
        bare(bare.ops.insert_many([bare.job() for _ in range(5)]))
        request = bare.request(bare.open(), 5, [queue])
        commands: int = bare.commands(bare.ops.fetch(request))
        assert len(bare(bare.ops.held(request.session, request.fetch_no, 10))) == 5
        return commands

    cost()
    before = cost()
    BURDENS[burden](bare)
    # The end of what waits is looked up by line, of which there may be some more now.
    assert cost() <= before + 3


def _called(bare: Any, operation: Any) -> set[bytes]:
    """The names of the commands that an operation calls."""
    bare.client.config_resetstat()
    bare(operation)
    stats: Any = bare.client.info("commandstats")
    return {name.removeprefix("cmdstat_").upper().encode() for name in stats}


def test_kinds_left_out_cost_no_command(bare: Any) -> None:
    bare.open()
    queue = QueueFetch("default", 5, {"none": 5})
    request = bare.request(bare.open(), 5, [queue])
    bare.add(kind="k0")
    before = bare.commands(bare.ops.fetch(request))
    _many(bare, lambda n: {"kind": f"k{n % 900}", "run_at": LATER if n % 2 else None})
    bare(bare.ops.insert_many([bare.job(kind="none", run_at=LATER)]))
    request = bare.request(bare.open(), 5, [queue])
    # Nor is there one whose answer is longer: not one names them all.
    assert b"SMEMBERS" not in _called(bare, bare.ops.fetch(request))
    request = bare.request(bare.open(), 5, [queue])
    assert bare.commands(bare.ops.fetch(request)) <= before + 1


async def test_priorities_below_are_not_looked_at(bare: Any, own_url: str) -> None:
    async def fetch() -> None:
        rows = bare.claim(3)
        assert [row.priority for row in rows] == [449] * 3

    async def cost() -> int:
        return await Monitor(own_url).cost_of(fetch)

    bare.open()
    bare(bare.ops.insert_many([bare.job(priority=449 - n // 50) for n in range(600)]))
    await cost()
    before = await cost()
    _many(bare, lambda n: {"priority": n % 900 - 450})
    # The first lines by due time, and the first by priority.
    assert await cost() <= before + 3 * NUMBERS["FEW_LINES"]


def test_a_batch_costs_few_commands_for_each_job(bare: Any) -> None:
    bare.open()
    jobs = [bare.job() for _ in range(200)]
    assert bare.commands(bare.ops.insert_many(jobs)) < 30
    request = bare.request(bare.open(), 100, [QueueFetch("default", 100)])
    assert bare.commands(bare.ops.fetch(request)) < 30
    finishes = [
        Finish(row.claim, "complete")
        for row in bare(bare.ops.held(request.session, request.fetch_no, 100))
    ]
    request = bare.request(bare.open(), 100, [QueueFetch("default", 100)])
    # Two for each job that is finished: its beginning is read, and written again.
    assert bare.commands(bare.ops.exchange(finishes, request)) < 2 * 100 + 32


def test_what_may_be_long_goes_in_steps(bare: Any) -> None:
    bare.open()
    ids = _many(bare, lambda _: {})
    bare.calls = 0
    bare(bare.ops.change_many([Change(each, "cancel") for each in ids]))
    assert bare.calls >= MANY / 200
    bare.calls = 0
    assert bare(bare.ops.count(ListFilter(kinds=frozenset({"work"})))) == MANY
    assert bare.calls >= MANY / 512
    bare.calls = 0
    bare.advance(1)
    everything = PruneRequest(cancelled=bare.clock.now(), limit=2 * MANY)
    assert bare(bare.ops.prune(everything)) == MANY
    assert bare.calls >= MANY / 200
    assert bare(bare.ops.prune(everything)) == 0
    for _ in range(3):
        bare(bare.ops.insert_many([bare.job() for _ in range(1000)]))
    claims = [row.claim for _ in range(3) for row in bare.claim(1000)]
    bare.calls = 0
    bare(bare.ops.session_close(bare.open()))
    assert bare.calls == 1 + 3  # to open it again changes nothing
    assert len(claims) == MANY
    assert bare(bare.ops.session_list()) == []
    assert bare(bare.ops.count(ListFilter())) == MANY
