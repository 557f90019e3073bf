"""Weights between queues: who gets how many of the jobs that are claimed."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest

from goncordia import ConfigurationError, Job
from goncordia.engine.turns import Turns

from .stand import Stand, Work


def counting(stand: Stand, seconds: float = 0.01) -> list[str]:
    order: list[str] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        order.append(job.queue)
        await stand.clock.sleep(seconds)

    return order


async def fill(stand: Stand, **queues: int) -> None:
    for queue, number in queues.items():
        await stand.client.enqueue_many([Work(n) for n in range(number)], queue=queue)


@pytest.mark.parametrize("concurrency", [1, 7, 20])
@pytest.mark.parametrize("lanes", [1, 2])
async def test_jobs_are_shared_by_weight(stand: Stand, concurrency: int, lanes: int) -> None:
    order = counting(stand)
    await fill(stand, a=1000, b=1000, c=1000)
    weights = {"a": 5, "b": 2, "c": 1}
    async with stand.working(queues=weights, concurrency=concurrency, lanes=lanes):
        while len(order) < 800:
            await stand.advance(0.05)
    shares = Counter(order[:800])
    for queue, weight in weights.items():
        assert abs(shares[queue] - 100 * weight) <= 2 * concurrency, shares


async def test_others_fill_the_room_that_a_queue_leaves(stand: Stand) -> None:
    order = counting(stand, 1.0)
    await fill(stand, b=40)
    async with stand.working(queues={"a": 1000, "b": 1}, concurrency=20):
        await stand.advance(1.5)
    assert len(order) == 40


async def test_the_lightest_does_not_starve(stand: Stand) -> None:
    order = counting(stand)
    await fill(stand, a=1500, b=10)
    async with stand.working(queues={"a": 100, "b": 1}, concurrency=10):
        await stand.advance(3)
    where = [place for place, queue in enumerate(order) if queue == "b"]
    assert where[0] < 20
    assert all(later - earlier < 1200 for earlier, later in itertools.pairwise(where))


async def test_a_queue_that_was_empty_has_saved_up_nothing(stand: Stand) -> None:
    order = counting(stand)
    await fill(stand, a=2000)
    async with stand.working(queues={"a": 1, "b": 1}, concurrency=5, max_pending=0):
        await stand.advance(2)
        before = len(order)
        assert before > 500
        await fill(stand, b=500)
        while len(order) < before + 200:
            await stand.advance(0.05)
    assert 85 <= Counter(order[before : before + 200])["b"] <= 115


def test_by_jobs_and_not_by_fetches() -> None:
    """Two queues of one weight, whose fetches differ in size, get the same."""
    rng = random.Random(3)
    turns = Turns(["a", "b"], {"a": 1, "b": 1})
    served: Counter[str] = Counter()
    for _ in range(500):
        first = turns.order()[0]
        number = rng.randint(1, 40) if first == "a" else rng.randint(1, 3)
        turns.served([first] * number)
        served[first] += number
    assert abs(served["a"] - served["b"]) <= 43


def test_a_request_under_way_counts_until_it_is_answered() -> None:
    turns = Turns(["a", "b"], {"a": 2, "b": 1})
    assert turns.order() == ("a", "b")
    turns.asked("a", 10)
    assert turns.order() == ("b", "a")
    turns.asked("a", -10)
    assert turns.order() == ("a", "b")


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        ({}, "queues: [] is empty; name at least one queue"),
        ({"a": 0}, "queues['a']: 0 is not a whole number from 1 to 1000"),
        ({"a": 1.5}, "queues['a']: 1.5 is not a whole number from 1 to 1000"),
        ({"a": 1001}, "queues['a']: 1001 is not a whole number from 1 to 1000"),
        ({"": 1}, "queues: key: '' is empty"),
        ({5: 1}, "queues: key: 5 is not a str"),
    ],
)
def test_wrong_weights(stand: Stand, queues: Any, message: str) -> None:
    counting(stand)
    with pytest.raises(ConfigurationError) as caught:
        stand.pool(queues=queues)
    assert str(caught.value).startswith(message)
