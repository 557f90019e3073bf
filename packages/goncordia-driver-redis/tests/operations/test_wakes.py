"""Who may be asleep is told, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from goncordia.driver import After, Change, Finish, QueueFetch, Wake
from goncordia_driver_redis.wire.wakes import heard

Said = Callable[[], list[Wake]]


@pytest.fixture
def said(bare: Any) -> Iterator[Said]:
    """What was published since the last call."""
    ear = bare.client.pubsub()
    ear.execute_command("SSUBSCRIBE", bare.keys.channel)
    assert ear.parse_response()[0] == b"ssubscribe"

    def said() -> list[Wake]:
        # The answer to what was asked last comes after all that was said before.
        bare.client.execute_command("SPUBLISH", bare.keys.channel, b"end")
        wakes: list[Wake] = []
        while (message := ear.parse_response()[2]) != b"end":
            wakes += heard(message)
        return wakes

    yield said
    ear.close()


def test_once_until_a_fetch_finds_too_little(bare: Any, said: Said) -> None:
    bare.open()
    bare.add()
    assert said() == [Wake("jobs", "default", 0.0)]
    bare.add()
    assert said() == []
    assert len(bare.claim(2)) == 2  # all that it asked for: it is busy
    bare.add()
    assert said() == []
    assert len(bare.claim(2)) == 1
    bare.add()
    assert said() == [Wake("jobs", "default", 0.0)]


def test_a_batch_is_one_wake_for_each_queue(bare: Any, said: Said) -> None:
    bare(bare.ops.insert_many([bare.job(queue=name) for name in "aabba"]))
    wakes = said()
    assert (len(wakes), {wake.queue for wake in wakes}) == (2, {"a", "b"})


def test_a_new_listener_is_told_anew(bare: Any, said: Said) -> None:
    bare.add()
    said()
    bare(bare.ops.listen())
    bare.add()
    assert said() == [Wake("jobs", "default", 0.0)]


def test_a_job_for_later_is_told_when_it_comes_first(bare: Any, said: Said) -> None:
    bare.add(run_at=After(30))
    assert said() == [Wake("jobs", "default", 30.0)]
    bare.add(run_at=After(60))
    assert said() == []
    bare.add(run_at=After(2.5))
    bare.add(run_at=After(60), kind="another")
    assert said() == [Wake("jobs", "default", 2.5), Wake("jobs", "default", 60.0)]
    bare.add()
    assert said() == [Wake("jobs", "default", 0.0)]


def test_every_way_in_which_a_job_becomes_due(bare: Any, said: Said) -> None:
    bare.open()
    waits = bare.add(run_at=After(50))
    for change in (Change(waits, "reschedule", After(-1)), Change(waits, "retry")):
        if change.action == "retry":
            bare(bare.ops.change_many([Change(waits, "reschedule", After(50))]))
        bare(bare.ops.listen())
        said()
        bare(bare.ops.change_many([change]))
        assert Wake("jobs", "default", 0.0) in said()
    for to in ("release", "retry", "snooze"):
        (row,) = bare.claim()
        bare(bare.ops.listen())
        bare(bare.ops.finish_many([Finish(row.claim, to)]))
        assert said() == [Wake("jobs", "default", 0.0)]
    (row,) = bare.claim()
    bare(bare.ops.listen())
    bare(bare.ops.session_close(row.claim.session))
    assert said() == [Wake("jobs", "default", 0.0)]


def test_a_freed_group_is_told(bare: Any, said: Said) -> None:
    bare.open()
    bare.add(group="g", group_limit=1)
    bare.add(group="g", group_limit=1, queue="other")
    said()
    (row,) = bare.claim()
    bare(bare.ops.listen())
    bare(bare.ops.finish_many([Finish(row.claim, "complete")]))
    assert said() == [Wake("jobs", "other", 0.0)]


def test_cancels_and_pauses_are_always_told(bare: Any, said: Said) -> None:
    bare.open()
    job_id = bare.add()
    bare.claim()
    said()
    for _ in range(2):
        bare(bare.ops.change_many([Change(job_id, "cancel")]))
        assert said() == [Wake("cancel", job_ids=(job_id,))]
    for operation in (bare.ops.queue_pause, bare.ops.queue_resume):
        bare(operation("default"))
        assert said() == [Wake("queue", "default")]
        bare(operation("default"))
        assert said() == []


def test_a_fetch_of_some_kinds_that_goes_away_empty_is_told(bare: Any, said: Said) -> None:
    bare.open()
    bare.add()
    said()
    assert bare.ask(5, QueueFetch("default", 5, {"other": 5})).jobs == []
    bare.add(kind="other")
    assert said() == [Wake("jobs", "default", 0.0)]
