"""The clients of a simulation: one that enqueues, and one that changes its mind."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Awaitable
from typing import Any
from uuid import UUID

from goncordia import Client, UniqueOpts
from goncordia.errors import ConflictError, DriverError, NotFoundError

from .process import Process
from .work import KINDS
from .world import QUEUES, World

__all__ = ["Clients"]

_REPLAYS = 20
_ALIKE = 8  # so many different args there are of each kind


class Clients:
    """What happens to jobs from outside.

    Attributes:
        enqueued: the jobs so far.

    Args:
        world: the world.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.enqueued: list[UUID] = []

    def _client(self, process: Process) -> Client[Any]:
        world = self._world
        return Client(world.client_driver(process), replays=_REPLAYS, rng=world.seeded())

    # ---------------------------------------------------------------- enqueuing

    async def produce(self) -> None:
        """Enqueue all the jobs of the seed."""
        world, rng = self._world, self._world.seeded()
        process = world.process("c0")
        client = self._client(process)
        left = rng.randint(*world.options.jobs)
        while left > 0:
            size = min(left, rng.choice([1, 1, 5, 10]))
            left -= size
            options = _job_options(rng)
            kinds = rng.choices(list(KINDS), world.options.kinds, k=size)
            args = [KINDS[kind](rng.randrange(_ALIKE)) for kind in kinds]
            # A client that gives up does not know whether its jobs are there; the ledger does.
            with contextlib.suppress(DriverError):
                if size == 1:
                    self.enqueued.append((await client.enqueue(args[0], **options)).id)
                else:
                    many = await client.enqueue_many(args, **options)
                    self.enqueued += [handle.id for handle in many.handles or []]
            await process.clock.sleep(rng.expovariate(1.0))

    # ---------------------------------------------------------------- administering

    async def administer(self) -> None:
        """Cancel, retry, reschedule and delete some of them."""
        world, rng = self._world, self._world.seeded()
        process = world.process("c1")
        client = self._client(process)
        hot = world.options.hot_admin
        if hot is None:
            hot = rng.random() < 0.15
        for _ in range(50 if hot else rng.randint(0, 8)):
            await process.clock.sleep(rng.uniform(0.2, 1.0) if hot else rng.uniform(0.5, 8.0))
            if not self.enqueued:
                continue
            job = rng.choice(self.enqueued)
            if hot or rng.random() < 0.6:
                await _change(client.cancel(job))
                if hot or rng.random() < 0.4:
                    await process.clock.sleep(rng.uniform(0.0, 2.0))
                    await _change(client.retry(job))
            elif rng.random() < 0.5:
                await _change(client.delete(job))
            else:
                await _change(client.reschedule(job, delay=rng.uniform(0.0, 5.0)))

    async def pause(self) -> None:
        """Pause a queue for a while."""
        world, rng = self._world, self._world.seeded()
        process = world.process("c2")
        client = self._client(process)
        await process.clock.sleep(rng.uniform(1.0, 20.0))
        queue = rng.choice(QUEUES)
        await _change(client.queue_pause(queue))
        await process.clock.sleep(rng.uniform(1.0, 15.0))
        # Nothing of its own may be under way any more that could pause the queue again.
        while world.network.late[process] or not await _change(client.queue_resume(queue)):
            await process.clock.sleep(0.5)


async def _change(change: Awaitable[object]) -> bool:
    """Wait for a change; whether it was made."""
    try:
        await change
    except (ConflictError, NotFoundError, DriverError):
        return False
    return True


def _job_options(rng: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {
        "queue": rng.choice(QUEUES),
        "priority": rng.choice([0, 0, 0, 5, -5]),
    }
    attempts = rng.choice([1, 1, 3, 5, None])
    if attempts is not None:
        options["max_attempts"] = attempts
    if rng.random() < 0.25:
        options["delay"] = rng.uniform(0.0, 6.0)
    if rng.random() < 0.12:
        options["timeout"] = rng.uniform(1.0, 4.0)
    if rng.random() < 0.2:
        options["unique"] = UniqueOpts(by_args=True)
    groups: list[dict[str, Any]] = [
        {},
        {},
        {"pipeline_id": "a"},
        {"concurrency_key": "b", "concurrency_limit": 2},
    ]
    return options | rng.choice(groups)
