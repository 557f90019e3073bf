"""Finishing in a transaction where it is refused, and in a thread."""

from __future__ import annotations

from typing import Any

import pytest

from goncordia import (
    ConfigurationError,
    Job,
    PayloadError,
    StaleClaimError,
    SyncJob,
    UnsupportedError,
)
from goncordia.driver import Finish
from goncordia.engine.events import JobFinished

from .stand import Stand, Work


class RollBackError(Exception):
    """Leaves the transaction without a commit."""


async def refused(stand: Stand, complete: Any) -> tuple[Exception, str]:
    """The error of a ``complete_tx``, and the state of the job after the handler went on."""
    raised: list[Exception] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> str:
        try:
            async with stand.memory.transaction() as tx:
                await complete(job, tx)
        except Exception as error:  # noqa: BLE001  # it is what the test looks at
            raised.append(error)
        return "went on"

    handle = await stand.enqueue()
    async with stand.working():
        await stand.advance(1)
    row = await stand.row(handle)
    assert row.output == b'"went on"'  # it completed in the ordinary way
    assert stand.wire.count("finish_many") == 0  # nothing to confirm
    (error,) = raised
    return error, row.state.value


async def test_an_output_that_cannot_be_stored(stand: Stand) -> None:
    error, state = await refused(stand, lambda job, tx: job.complete_tx(tx, object()))
    assert (type(error), state) == (PayloadError, "completed")


async def test_something_that_is_no_transaction(stand: Stand) -> None:
    error, state = await refused(stand, lambda job, _: job.complete_tx("tx"))
    assert (type(error), state) == (ConfigurationError, "completed")


async def test_a_driver_that_cannot() -> None:
    error, state = await refused(Stand(tx_finish=False), lambda job, tx: job.complete_tx(tx))
    assert (type(error), state) == (UnsupportedError, "completed")
    assert "tx_finish" in str(error)


# ---------------------------------------------------------------- in a thread


@pytest.mark.parametrize(("commit", "state"), [(True, "completed"), (False, "retryable")])
async def test_plain_functions_with_their_synchronous_transaction(
    stand: Stand, commit: bool, state: str
) -> None:
    @stand.registry.worker(Work, retry_policy=lambda _: 100)
    def work(job: SyncJob[Work]) -> None:
        with stand.memory.sync_transaction() as tx:
            job.complete_tx(tx, "from a thread")
            if not commit:
                raise RollBackError

    handle = await stand.enqueue()
    async with stand.working() as pool:
        await stand.until(lambda: stand.seen(JobFinished) and not stand.engine(pool).claims)
    row = await stand.row(handle)
    assert (row.state.value, row.output) == (state, b'"from a thread"' if commit else None)


async def test_a_thread_that_lost_its_job_cannot_commit(stand: Stand) -> None:
    raised: list[Exception] = []

    @stand.registry.worker(Work)
    def work(job: SyncJob[Work]) -> None:
        row = stand.memory.sync_executor().get_many([job.id])[0]
        assert row is not None
        assert row.claim is not None
        stand.memory.store.finish_many([Finish(row.claim, "discard")], stand.clock.now())
        try:
            with stand.memory.sync_transaction() as tx:
                job.complete_tx(tx)
        except StaleClaimError as error:
            raised.append(error)

    handle = await stand.enqueue()
    async with stand.working():
        await stand.until(lambda: raised)
    assert await stand.state(handle) == "discarded"
