"""Marks on running claims: started, and checkpoints; sent in batches, repeated until answered."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from functools import partial

from goncordia.clock import Clock
from goncordia.driver import BaseExecutor, Claim, Mark, Outcome
from goncordia.engine.calls import Calls, busy_pause, one_each

__all__ = ["Marks"]


class _Waiting:
    """A mark that was not answered yet.

    Attributes:
        busy: so often it was answered that somebody holds the job.
    """

    __slots__ = ("answer", "busy", "mark")

    def __init__(self, mark: Mark) -> None:
        self.mark = mark
        self.answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.busy = 0

    def settle(self, what: Outcome | Exception) -> None:
        """Tell who waits for it, if there still is one."""
        if self.answer.done():
            return
        if isinstance(what, Exception):
            self.answer.set_exception(what)
        else:
            self.answer.set_result(what)


class Marks:
    """Collects marks that come together into one request.

    One whose job somebody's open transaction holds is sent again after a pause, and so are those of
    the same claim that come after it; all others do not wait for it.

    Args:
        executor: the driver's.
        calls: how to call it.
        clock: the pool's.
        rng: the source of jitter.
    """

    def __init__(
        self, executor: BaseExecutor, calls: Calls, clock: Clock, rng: random.Random
    ) -> None:
        self._executor = executor
        self._calls = calls
        self._clock = clock
        self._rng = rng
        self._waiting: deque[_Waiting] = deque()
        self._held: dict[Claim, deque[_Waiting]] = {}
        self._unanswered: set[asyncio.Future[Outcome]] = set()
        self._sender: asyncio.Task[None] | None = None
        # Of these a copy of an older checkpoint may still be under way.
        self.repeated: set[Claim] = set()

    async def put(self, mark: Mark) -> Outcome:
        """Send a mark, and wait for the answer for as long as it takes.

        Raises:
            Exception: the driver refused it for good.
        """
        new = _Waiting(mark)
        self._unanswered.add(new.answer)
        new.answer.add_done_callback(self._unanswered.discard)
        self._held.get(mark.claim, self._waiting).append(new)
        self._start()
        return await new.answer

    async def stop(self) -> None:
        """Give up on what was not answered; who waits for it is cancelled."""
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
        for answer in list(self._unanswered):
            answer.cancel()

    def _start(self) -> None:
        if self._waiting and (self._sender is None or self._sender.done()):
            self._sender = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        size = self._executor.capabilities.max_batch
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(size, len(self._waiting)))]
            await self._send_batch([each for each in batch if not each.answer.done()])

    async def _send_batch(self, batch: list[_Waiting]) -> None:
        marks = [each.mark for each in batch]
        if not marks:
            return
        tries = 0

        async def send() -> list[Outcome]:
            nonlocal tries
            tries += 1
            return one_each(marks, await self._executor.mark_many(marks))

        try:
            outcomes = await self._calls.until_answered(send, "marking claims")
        except Exception as error:  # noqa: BLE001  # refused: it is one of them, or this one
            if len(batch) == 1:
                batch[0].settle(error)
                return
            for each in batch:
                await self._send_batch([each])
            return
        if tries > 1:
            self.repeated.update(mark.claim for mark in marks if mark.checkpoint is not None)
        busy: list[_Waiting] = []
        for each, outcome in zip(batch, outcomes, strict=True):
            if outcome.status == "BUSY":
                busy.append(each)
            else:
                each.settle(outcome)
        if busy:
            self._hold(busy)

    def _hold(self, busy: list[_Waiting]) -> None:
        """Keep them for later; those of the same claims that have come meanwhile stay behind."""
        for each in busy:
            each.busy += 1
            claim = each.mark.claim
            if claim not in self._held:
                self._held[claim] = deque()
                pause = busy_pause(each.busy, self._rng)
                self._clock.call_later(pause, partial(self._send_again, claim))
            self._held[claim].append(each)
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            self._held.get(each.mark.claim, self._waiting).append(each)

    def _send_again(self, claim: Claim) -> None:
        self._waiting.extendleft(reversed(self._held.pop(claim)))
        self._start()
