"""One seed, from beginning to end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from typing import Any
from unittest import mock
from uuid import UUID

from goncordia.engine import engine as engine_module
from goncordia.engine import leadership, session
from goncordia.engine.run import Run

from .chaos import Chaos
from .clients import Clients
from .heart import SimHeart
from .loop import DeadlockError, LivelockError, SimLoop
from .options import Options, Verdict
from .schedulers import Timetable
from .work import BEHAVIOURS
from .world import World

__all__ = ["abandon", "simulate", "simulated"]

_LATEST = 600.0
"""Virtual seconds after which a seed must have settled; most do within 150."""

_LATEST_WITH_RATES = 2400.0
"""The same where every third second brings one token, and a bad network loses half of them."""

_CRON = 0.25
"""The share of seeds with periodic jobs."""

_EXPECTED_ERRORS = (
    "failed, the job is discarded",  # the jobs' own failures
    "was taken back from",  # the last attempts of the killed ones
    "its result cannot be stored",  # the poisoned ones
    "goes on after the shutdown",  # the stubborn ones
    "the shutdown was over before its result",  # those of an outage
    "the event loop has not turned",  # the blocked ones
)


def simulate(seed: int, options: Options | None = None) -> Verdict:
    """Run one seed."""
    world = World(seed, options or Options())
    with simulated() as errors:
        try:
            world.loop.run_until_complete(_live(world, random.Random(f"timetable {seed}")))
        except DeadlockError:
            world.books.bad("nothing is ready and no timer is set")
        except LivelockError:
            world.books.bad("time stands still while callbacks call callbacks")
        for message in errors:
            world.books.bad(f"logged: {message}"[:120])
        counts = Counter(world.books.counts)
        counts["calls"] = world.network.calls
        counts["seconds"] = int(world.loop.time())
        verdict = Verdict(
            seed,
            dict(world.books.broken),
            world.books.first,
            dict(counts),
            world.digest,
            world.trace_lines,
        )
        world.over = True
        abandon(world.loop)
    return verdict


async def _live(world: World, cron_rng: random.Random) -> None:
    rng = world.rng
    errors: list[str] = []
    world.loop.set_exception_handler(
        lambda _, context: errors.append(repr(context.get("exception") or context["message"]))
    )
    clients, chaos = Clients(world), Chaos(world)
    chaos.plan_outages()
    for number in range(3):
        # The first is of an older version, now and then, that does not know every kind.
        is_old = number == 0 and rng.random() < 0.3
        known = {kind: BEHAVIOURS[kind] for kind in BEHAVIOURS if kind != "steps" or not is_old}
        world.start_pool(f"p{number}", known)
    acts: list[Callable[[], Coroutine[Any, Any, None]]] = [clients.produce, clients.administer]
    for act, chance in (
        (chaos.kill, 0.7),
        (chaos.freeze, 0.7),
        (chaos.shut_down, 0.5),
        (chaos.cut, 0.2),
        (clients.pause, 0.15),
    ):
        if rng.random() < chance:
            acts.append(act)
    has_cron = cron_rng.random() < _CRON
    if has_cron if world.options.cron is None else world.options.cron:
        acts.append(Timetable(world, cron_rng).schedule)
    tasks = {act.__name__: world.spawn(act()) for act in acts}
    settled = await _settle(world, tasks.values())
    for name, task in tasks.items():
        if not task.done():
            world.books.bad(f"{name} waits for ever")
        elif (error := task.exception()) is not None:
            world.books.bad(f"{name} failed: {error!r}"[:120])
    # What did not settle must be looked at before the shutdown gives everything back.
    if not settled:
        world.ledger.close(world.rows())
    await _stop_all(world)
    if settled:
        world.ledger.close(world.rows())
    for message in errors:
        world.books.bad(f"exception: {message}"[:120])


async def _settle(world: World, tasks: Any) -> bool:
    """Wait until all is done that can be done; whether it ever was."""
    latest = _LATEST_WITH_RATES if world.books.rates.on else _LATEST
    while world.loop.time() < latest:
        await asyncio.sleep(0.5)
        world.ledger.look()
        is_quiet = not world.network.late.total() and world.network.outage() is None
        if is_quiet and not world.store.unfinished and all(task.done() for task in tasks):
            return True
    return False


async def _stop_all(world: World) -> None:
    for member in world.members:
        process = member.process
        if process.dead or member.stopped is not None:
            continue
        process.thaw()
        if not member.started.done():
            await asyncio.wait([member.started], timeout=60.0)
        if member.started.done():
            await world.stop_pool(member)
        else:
            world.books.bad("a live pool stays without a session", process.name)


# -------------------------------------------------------------------- the stage


class _Errors(logging.Handler):
    """Collects what the engine itself calls an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if not any(expected in message for expected in _EXPECTED_ERRORS):
            detail = repr(record.exc_info[1]) if record.exc_info else ""
            self.messages.append(f"{message} {detail}")


def _hash_of_run(run: Run) -> int:
    return hash((run.claim.job_id.int, run.claim.fetch_no))


@contextlib.contextmanager
def simulated() -> Iterator[list[str]]:
    """The engine as a simulation needs it; gives the errors that it logs.

    The heartbeat thread is its stand-in, sets of runs have one order, ids of sessions and leaders
    are the same each time, and the log is not written. Garbage is collected afterwards: in the
    middle it would cost a third of the time.
    """
    logger = logging.getLogger("goncordia")
    before, errors, collects = (logger.level, logger.propagate), _Errors(), gc.isenabled()
    rng = random.Random(0)

    def new_id() -> UUID:
        return UUID(int=rng.getrandbits(128))

    logger.setLevel(logging.ERROR)
    logger.propagate = False
    logger.addHandler(errors)
    gc.disable()
    try:
        with (
            mock.patch.object(engine_module, "HeartThread", SimHeart),
            mock.patch.object(Run, "__hash__", _hash_of_run),
            mock.patch.object(session, "new_session_id", new_id),
            mock.patch.object(leadership, "new_session_id", new_id),
        ):
            yield errors.messages
    finally:
        logger.removeHandler(errors)
        logger.setLevel(before[0])
        logger.propagate = before[1]
        if collects:
            gc.enable()


def abandon(loop: SimLoop) -> None:
    """End what is left, without letting it say anything more."""
    loop.set_exception_handler(lambda *_: None)
    for _ in range(20):
        left = asyncio.all_tasks(loop)
        if not left:
            break
        for task in left:
            task.cancel()
        with contextlib.suppress(DeadlockError, LivelockError):
            loop.run_until_complete(asyncio.sleep(0))
    loop.close()
