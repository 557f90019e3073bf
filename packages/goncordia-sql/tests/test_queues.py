from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from goncordia.driver import (
    After,
    At,
    FetchRequest,
    Finish,
    NewJob,
    PruneRequest,
    QueueFetch,
    QueueState,
    QueueStats,
)

New = Callable[..., NewJob]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SESSION = UUID(int=1)


def insert(bare: Any, *jobs: NewJob) -> None:
    bare.run(bare.ops.insert.insert_many(jobs))


def end(bare: Any, queue: str, to: Any, number: int, **fields: Any) -> None:
    """Fetch all of the queue and end it so."""
    bare.run(bare.ops.sessions.session_open(SESSION, "w", 60.0))
    request = FetchRequest(SESSION, number, 100, (QueueFetch(queue, 100),))
    rows = bare.run(bare.ops.fetch.fetch(request)).jobs
    bare.run(bare.ops.finish.finish_many([Finish(row.claim, to, **fields) for row in rows]))


def test_queues_that_were_paused_or_hold_jobs(bare: Any, new_job: New) -> None:
    insert(bare, new_job(queue="ready"), new_job(queue="later", run_at=After(9)))
    insert(bare, new_job(queue="done"))
    end(bare, "done", "complete", 1)
    bare.run(bare.ops.queues.queue_resume("never"))
    for name in ("paused", "resumed", "ready"):
        for _ in range(2):
            bare.run(bare.ops.queues.queue_pause(name))
    bare.run(bare.ops.queues.queue_resume("resumed"))
    assert bare.run(bare.ops.queues.queue_list()) == [
        QueueState("later", paused=False),
        QueueState("paused", paused=True),
        QueueState("ready", paused=True),
        QueueState("resumed", paused=False),
    ]


def test_numbers(bare: Any, new_job: New) -> None:
    insert(
        bare,
        new_job(queue="a", run_at=At(NOW - timedelta(seconds=5))),
        new_job(queue="a"),
        new_job(queue="a", run_at=After(2)),
        new_job(queue="a", run_at=After(9)),
        new_job(queue="a", group="g", group_limit=1, run_at=At(NOW - timedelta(seconds=9))),
        new_job(queue="a", group="g", group_limit=1),
        new_job(queue="b"),
    )
    end(bare, "b", "retry", 1, when=After(9))
    insert(bare, new_job(queue="c"))
    bare.run(bare.ops.fetch.fetch(FetchRequest(SESSION, 2, 1, (QueueFetch("c", 1),))))
    bare.clock.advance(3)
    first = NOW - timedelta(seconds=9)
    assert bare.run(bare.ops.queues.queue_stats()) == [
        QueueStats("a", available=5, scheduled=1, oldest_due=first),
        QueueStats("b", retryable=1),
        QueueStats("c", running=1),
    ]


def test_prune_takes_what_is_old_and_free(bare: Any, new_job: New) -> None:
    key = iter(bytes([n] * 32) for n in range(9))
    insert(bare, *(new_job(queue="a") for _ in range(3)))
    insert(bare, new_job(queue="a", unique_key=next(key)))
    insert(bare, new_job(queue="a", unique_key=next(key), unique_hold="until_deleted"))
    until = At(NOW + timedelta(seconds=60))
    insert(bare, new_job(queue="a", unique_key=next(key), unique_hold=until))
    end(bare, "a", "complete", 1)
    insert(bare, new_job(queue="b"))
    end(bare, "b", "discard", 2)
    insert(bare, new_job(queue="c"))
    end(bare, "c", "cancel", 3)

    def prune(**before: Any) -> int:
        count: int = bare.run(bare.ops.queues.prune(PruneRequest(**before)))
        return count

    assert prune(completed=NOW, discarded=NOW, cancelled=NOW) == 0
    later = NOW + timedelta(seconds=1)
    assert prune(limit=10) == 0
    assert prune(completed=later, limit=3) == 3
    assert prune(completed=later, discarded=later, limit=10) == 2
    bare.clock.advance(60)
    assert prune(completed=later, cancelled=later) == 2
    assert bare.value("SELECT count(*) FROM goncordia_job") == 1
