"""Queue pauses in one record, which every fetch reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from goncordia.driver.results import QueueState
from goncordia.ids import new_token

if TYPE_CHECKING:
    from goncordia.driver.executor import BaseExecutor

__all__ = ["RecordQueues"]

_RECORD: Final = "queues"
_decode = msgspec.json.Decoder(dict[str, bool]).decode


class RecordQueues:
    """Pause, resume and list queues over the records of an executor."""

    def __init__(self, executor: BaseExecutor) -> None:
        self._executor = executor

    async def _read(self) -> tuple[dict[str, bool], int]:
        record = await self._executor.record_get(_RECORD)
        return ({}, 0) if record is None else (_decode(record.value), record.version)

    async def paused(self) -> set[str]:
        """The names of the paused queues."""
        queues, _ = await self._read()
        return {name for name, paused in queues.items() if paused}

    async def set_paused(self, name: str, *, paused: bool) -> None:
        """Pause or resume; repeated until no other writer came between."""
        while True:
            queues, version = await self._read()
            if queues.get(name, False) == paused:
                return
            queues[name] = paused
            value = msgspec.json.encode(queues, order="deterministic")
            put = await self._executor.record_put(_RECORD, value, version, new_token())
            if put.done:
                return

    async def list_queues(self) -> list[QueueState]:
        """The queues in the record, and those with unfinished jobs."""
        queues, _ = await self._read()
        names = {stats.name for stats in await self._executor.queue_stats()} | set(queues)
        return [QueueState(name, paused=queues.get(name, False)) for name in sorted(names)]
