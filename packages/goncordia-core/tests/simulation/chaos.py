"""What befalls the processes of a simulation, and the network."""

from __future__ import annotations

import asyncio
import random

from .network import Outage
from .process import Process
from .world import LEASE, World

__all__ = ["Chaos"]

_DELICATE = (
    ("fetch", "exchange"),
    ("fetch", "exchange"),
    ("mark_many",),
    ("mark_many",),
    ("session_beat",),
    ("session_open",),
    ("finish_many",),
    ("tx_finish", "tx_commit"),
    ("expire",),
    ("held",),
)
"""Requests under way when something befalls their process."""


class Chaos:
    """One act for each thing that can go wrong; three pools must be there.

    Args:
        world: the world.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    def plan_outages(self) -> None:
        """The backend goes away, for shorter or longer than a lease, or not at all."""
        rng = self._world.seeded()
        start = rng.uniform(1.0, 30.0)
        for _ in range(rng.choice([0, 1, 1, 2])):
            length = rng.choice([1.0, 5.0, 15.0, 25.0, 45.0])
            outage = Outage(start, start + length, stalls=rng.random() < 0.5)
            self._world.network.outages.append(outage)
            start += length + rng.uniform(0.5, 30.0)

    async def _moment(self, rng: random.Random, process: Process, earliest: float) -> None:
        """Wait for the moment at which something befalls the process.

        Often it is while one of its requests is under way: that is where the gaps are.
        """
        await asyncio.sleep(earliest)
        focus = self._world.options.focus
        if focus or rng.random() < 0.6:
            names = focus or rng.choice(_DELICATE)
            await self._world.network.sending(process, names, 20.0)
            await asyncio.sleep(rng.uniform(0.0, 0.015))

    async def kill(self) -> None:
        """Kill -9, and perhaps a new process in its place."""
        world, rng = self._world, self._world.seeded()
        process = world.members[0].process
        await self._moment(rng, process, rng.uniform(1.0, 40.0))
        await world.kill(process)
        if rng.random() < 0.5:
            await asyncio.sleep(rng.uniform(0.0, 10.0))
            world.start_pool("p3")

    async def freeze(self) -> None:
        """SIGSTOP and SIGCONT, a few times."""
        world, rng = self._world, self._world.seeded()
        process = world.members[1].process
        for _ in range(rng.randint(1, 3)):
            await self._moment(rng, process, rng.uniform(1.0, 25.0))
            world.trace("stop", process.name)
            process.stop()
            world.books.doubt(process)
            about_a_lease = rng.uniform(0.8, 1.3) * LEASE
            await asyncio.sleep(rng.choice([2.0, 15.0, about_a_lease, about_a_lease, 50.0]))
            world.trace("thaw", process.name)
            world.books.doubt(process)
            process.thaw()

    async def shut_down(self) -> None:
        """A graceful shutdown under load, and perhaps a new process in its place."""
        world, rng = self._world, self._world.seeded()
        member = world.members[2]
        await self._moment(rng, member.process, rng.uniform(2.0, 50.0))
        await world.stop_pool(member)
        if rng.random() < 0.7:
            world.start_pool("p4")

    async def cut(self) -> None:
        """A pool alone loses the network, for longer than its lease."""
        world, rng = self._world, self._world.seeded()
        process = world.members[2].process
        await self._moment(rng, process, rng.uniform(1.0, 30.0))
        world.trace("cut", process.name)
        process.cut_until = world.loop.time() + rng.uniform(25.0, 50.0)
        world.books.doubt(process, process.cut_until)
