"""A stage for directed scenes: the same world, but nothing happens by chance."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import msgspec

from goncordia import Client
from goncordia.driver import Capabilities, JobRow
from goncordia.job import Job

from .bugs import planted
from .entries import RunEntry
from .network import Fate, Faults
from .options import Options
from .process import Process
from .seed import abandon, simulated
from .work import KINDS, App, Behaviour
from .world import Member, World

__all__ = ["Scene", "napping", "play"]

_PLAIN_SETTINGS: dict[str, Any] = {
    "concurrency": 2,
    "max_pending": 0,
    "interrupt_on_lapse": False,
    "queue_policies": {},
    "kind_policies": {},
}

Story = Callable[["Scene"], Awaitable[None]]


class Scene:
    """A world in which a story is told.

    Attributes:
        world: the world.
        client: enqueues, over a network without faults.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._fates: list[tuple[str, str, float, float, Fate, bool]] = []
        world.network.judge = self._judge
        process = world.process("client")
        self.client: Client[Any] = Client(world.client_driver(process), rng=world.seeded())

    # ---------------------------------------------------------------- who is there

    def pool(self, name: str, behaviour: Behaviour, kind: str = "plain", **settings: Any) -> Member:
        """A process with a pool that knows one kind of job."""
        chosen = _PLAIN_SETTINGS | settings
        heart = chosen.pop("heart", False)
        return self.world.start_pool(
            name, {kind: behaviour}, heart=heart, capabilities=self._capabilities(), **chosen
        )

    def _capabilities(self) -> Capabilities:
        return msgspec.structs.replace(self.world.capabilities, wakeups="none")

    async def enqueue(self, kind: str = "plain", **options: Any) -> UUID:
        """A job."""
        return (await self.client.enqueue(KINDS[kind](1), **options)).id

    # ---------------------------------------------------------------- what happens

    def fate(self, process: str, name: str, fate: Fate, *, after: float = 0.0) -> None:
        """The next such request, from then on, has this fate."""
        self._fates.append((process, name, after, float("inf"), fate, True))

    def fates(self, process: str, name: str, fate: Fate, start: float, end: float) -> None:
        """All such requests have it, for that time."""
        self._fates.append((process, name, start, end, fate, False))

    def forget(self, process: str, name: str) -> None:
        """From now on such requests go well."""
        self._fates = [each for each in self._fates if each[:2] != (process, name)]

    def silence(self, member: Member, start: float, end: float) -> None:
        """No beat of it gets through, for that time."""
        self.fates(member.process.name, "session_beat", ("hang", 0.0), start, end)
        self.world.books.doubt(member.process, end)

    def _judge(self, process: Process, name: str) -> Fate | None:
        now = self.world.loop.time()
        for each in self._fates:
            who, what, start, end, fate, once = each
            if who == process.name and what == name and start <= now < end:
                if once:
                    self._fates.remove(each)
                return fate
        return None

    async def until(self, time: float) -> None:
        """Wait for that time, and look at everything on the way."""
        loop = self.world.loop
        while loop.time() < time:
            await asyncio.sleep(min(0.5, time - loop.time()))
            self.world.ledger.look()

    def stop(self, member: Member) -> None:
        """SIGSTOP."""
        member.process.stop()
        self.world.books.doubt(member.process)

    def thaw(self, member: Member) -> None:
        """SIGCONT."""
        self.world.books.doubt(member.process)
        member.process.thaw()

    # ---------------------------------------------------------------- what came of it

    def row(self, job: UUID) -> JobRow:
        """The job as it is stored."""
        row = self.world.row(job)
        assert row is not None
        return row

    def runs(self, job: UUID) -> list[RunEntry]:
        """The calls of its handler."""
        return self.world.books.jobs[job].runs


def napping(seconds: float) -> Behaviour:
    """A handler that takes so long."""

    async def nap(job: Job[Any, App], app: App, run: RunEntry) -> object:
        await app.nap(run, seconds)
        return None

    return nap


def play(story: Story, *bugs: str) -> set[str]:
    """Tell the story, perhaps with bugs planted; which rules were broken.

    With some seeds, since the order of what comes at once is left to chance; with bugs, until one
    of many seeds shows them.
    """
    broken: set[str] = set()
    with contextlib.ExitStack() as stack:
        for bug in bugs:
            stack.enter_context(planted(bug))
        stack.enter_context(simulated())
        for seed in range(40 if bugs else 4):
            broken |= _play(story, seed)
            if broken and seed >= 3:
                break
    return broken


def _play(story: Story, seed: int) -> set[str]:
    """Once: stop all pools at the end, and balance the books."""
    calm = Options(
        faults=Faults(rate=0.0), weak=False, records=False, keep_trace=True, limits=False
    )
    world = World(seed, calm)
    try:
        world.loop.run_until_complete(_tell(Scene(world), story))
    finally:
        print(f"seed {seed}:", *world.trace_lines, sep="\n")  # shown when the test fails
        world.over = True
        broken = set(world.books.broken)
        abandon(world.loop)
    return broken


async def _tell(scene: Scene, story: Story) -> None:
    world = scene.world
    await story(scene)
    for member in world.members:
        if not member.process.dead and member.stopped is None:
            member.process.thaw()
            await world.stop_pool(member)
    world.ledger.close(world.rows())
