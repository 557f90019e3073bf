"""Marks on running claims: started, and checkpoints; sent in batches, repeated until answered."""

from __future__ import annotations

import asyncio
from collections import deque

from goncordia.driver import BaseExecutor, Claim, Mark, Outcome
from goncordia.engine.calls import Calls, one_each

__all__ = ["Marks"]


class Marks:
    """Collects marks that come together into one request.

    Args:
        executor: the driver's.
        calls: how to call it.
    """

    def __init__(self, executor: BaseExecutor, calls: Calls) -> None:
        self._executor = executor
        self._calls = calls
        self._waiting: deque[tuple[Mark, asyncio.Future[Outcome]]] = deque()
        self._unanswered: set[asyncio.Future[Outcome]] = set()
        self._sender: asyncio.Task[None] | None = None
        # Of these a copy of an older checkpoint may still be under way.
        self.repeated: set[Claim] = set()

    async def put(self, mark: Mark) -> Outcome:
        """Send a mark, and wait for the answer for as long as it takes.

        Raises:
            Exception: the driver refused it for good.
        """
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((mark, answer))
        self._unanswered.add(answer)
        answer.add_done_callback(self._unanswered.discard)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.get_running_loop().create_task(self._send())
        return await answer

    async def stop(self) -> None:
        """Give up on what was not answered; who waits for it is cancelled."""
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
        for answer in list(self._unanswered):
            answer.cancel()

    async def _send(self) -> None:
        size = self._executor.capabilities.max_batch
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(size, len(self._waiting)))]
            await self._send_batch([item for item in batch if not item[1].done()])

    async def _send_batch(self, batch: list[tuple[Mark, asyncio.Future[Outcome]]]) -> None:
        marks = [mark for mark, _ in batch]
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
                _settle(batch[0][1], error)
                return
            for item in batch:
                await self._send_batch([item])
            return
        if tries > 1:
            self.repeated.update(mark.claim for mark in marks if mark.checkpoint is not None)
        for (_, answer), outcome in zip(batch, outcomes, strict=True):
            _settle(answer, outcome)


def _settle(answer: asyncio.Future[Outcome], what: Outcome | Exception) -> None:
    if answer.done():
        return
    if isinstance(what, Exception):
        answer.set_exception(what)
    else:
        answer.set_result(what)
