"""Capabilities ``native_tx``, ``sync_tx`` and ``tx_finish``: inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, TypeAlias

import pytest

from goncordia.driver import Change, Finish, InsertResult, JobState, ListFilter
from goncordia.errors import ConfigurationError, UnsupportedError
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, claim_of, ids
from goncordia_conformance.marks import lacks, needs, not_proved, rule

__all__ = ["SyncTransaction", "SyncTransactionTests", "Transaction", "TransactionTests"]

Transaction: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Any]]
"""``async with transaction(driver) as tx:`` commits at the end, and rolls back on an error."""

SyncTransaction: TypeAlias = Callable[[Any], AbstractContextManager[Any]]
"""``with sync_transaction(driver) as tx:``, as :data:`Transaction`."""

KEY = bytes(range(32))


class RolledBackError(Exception):
    """Raised to leave a transaction by its rollback."""


class TransactionTests(Conformance, rule=14):
    """What is asked in a transaction is there if and only if it commits."""

    @pytest.fixture
    def transaction(self) -> Transaction:
        """For the driver's author: begins a transaction on the store; see :data:`Transaction`."""
        not_proved("native_tx", "no fixture transaction")

    @pytest.fixture
    def idle_connection(self) -> Any:
        """For the driver's author: of the transaction type, or its connection, but in none."""
        not_proved("unwrap_tx refuses what is in no transaction", "no fixture idle_connection")

    @lacks("native_tx")
    async def test_without_the_capability_it_is_refused(self, lab: Lab) -> None:
        with pytest.raises(UnsupportedError, match="native_tx"):
            lab.driver.unwrap_tx(object())

    @needs("native_tx")
    async def test_what_is_no_transaction_is_refused(self, lab: Lab) -> None:
        for stranger in (object(), None, "BEGIN"):
            with pytest.raises(ConfigurationError, match="tx"):
                lab.driver.unwrap_tx(stranger)

    @needs("native_tx")
    async def test_what_is_in_no_transaction_is_refused(
        self, lab: Lab, idle_connection: Any
    ) -> None:
        with pytest.raises(ConfigurationError, match="tx"):
            await lab.driver.unwrap_tx(idle_connection).insert_many([lab.job()])
        assert await lab.executor.count(ListFilter()) == 0

    @needs("native_tx")
    async def test_a_transaction_that_is_over_is_refused(
        self, lab: Lab, transaction: Transaction
    ) -> None:
        async with transaction(lab.driver) as tx:
            pass
        with pytest.raises(ConfigurationError, match="tx"):
            await lab.driver.unwrap_tx(tx).insert_many([lab.job()])
        assert await lab.executor.count(ListFilter()) == 0

    @needs("native_tx")
    async def test_a_commit_shows_the_jobs(self, lab: Lab, transaction: Transaction) -> None:
        jobs = [lab.job(args=b"[%d]" % n) for n in range(3)]
        asked = [job.id for job in jobs]
        async with transaction(lab.driver) as tx:
            results = await lab.driver.unwrap_tx(tx).insert_many(jobs)
            batch = lab.capabilities.native_tx == "batch"
            assert [r.status for r in results] == ["PENDING" if batch else "INSERTED"] * 3
            assert await lab.executor.get_many(asked) == [None] * 3
        assert [row.args for row in await lab.rows(*asked)] == [job.args for job in jobs]
        await lab.let_appear()
        assert ids(await (await lab.session()).fetch()) == asked

    @needs("native_tx")
    async def test_a_rollback_leaves_nothing(self, lab: Lab, transaction: Transaction) -> None:
        job = lab.job()
        if lab.capabilities.unique_jobs:
            job = lab.job(unique_key=KEY)
        with pytest.raises(RolledBackError):
            async with transaction(lab.driver) as tx:
                await lab.driver.unwrap_tx(tx).insert_many([job])
                raise RolledBackError
        assert await lab.executor.count(ListFilter()) == 0
        assert (await lab.executor.insert_many([job]))[0].status == "INSERTED"

    @needs(native_tx="interactive")
    async def test_it_sees_its_own_jobs(self, lab: Lab, transaction: Transaction) -> None:
        job = lab.job()
        async with transaction(lab.driver) as tx:
            inside = lab.driver.unwrap_tx(tx)
            await inside.insert_many([job])
            assert await inside.insert_many([job]) == [InsertResult(job.id, "REPLAYED")]
            answers = await inside.cancel_many([job.id, lab.new_id()])
            assert [answer.status for answer in answers] == ["CHANGED", "GONE"]
        assert await lab.state(job.id) == JobState.CANCELLED

    @needs("unique_jobs", native_tx="interactive")
    @rule(14, 6)
    async def test_a_duplicate_does_not_abort_it(self, lab: Lab, transaction: Transaction) -> None:
        holder = await lab.add(unique_key=KEY)
        jobs = [lab.job(), lab.job(unique_key=KEY), lab.job()]
        async with transaction(lab.driver) as tx:
            inside = lab.driver.unwrap_tx(tx)
            results = await inside.insert_many(jobs)
            assert [r.status for r in results] == ["INSERTED", "DUPLICATE", "INSERTED"]
            assert results[1].holder == holder
            await inside.insert_many([lab.job()])
        assert await lab.executor.count(ListFilter()) == 4

    @needs("unique_jobs", native_tx="interactive")
    @rule(14, 6)
    async def test_its_keys_are_held_from_the_commit(
        self, lab: Lab, transaction: Transaction
    ) -> None:
        first = lab.job(unique_key=KEY)
        async with transaction(lab.driver) as tx:
            inside = lab.driver.unwrap_tx(tx)
            await inside.insert_many([first])
            again = lab.job(unique_key=KEY)
            assert await inside.insert_many([again]) == [
                InsertResult(again.id, "DUPLICATE", first.id)
            ]
        later = lab.job(unique_key=KEY)
        assert await lab.executor.insert_many([later]) == [
            InsertResult(later.id, "DUPLICATE", first.id)
        ]

    @needs("native_tx")
    async def test_a_known_id_is_a_replay(self, lab: Lab, transaction: Transaction) -> None:
        job = lab.job()
        await lab.insert(job)
        async with transaction(lab.driver) as tx:
            results = await lab.driver.unwrap_tx(tx).insert_many([job, lab.job()])
            assert results[0].status in {"REPLAYED", "PENDING"}
        assert await lab.executor.count(ListFilter()) == 2

    @needs("native_tx")
    @pytest.mark.parametrize("commits", [True, False])
    async def test_cancel(self, lab: Lab, transaction: Transaction, commits: bool) -> None:
        waiting = await lab.add(queue="other")
        running = await lab.running()
        try:
            async with transaction(lab.driver) as tx:
                await lab.driver.unwrap_tx(tx).cancel_many([waiting, running.id])
                assert await lab.state(waiting) == JobState.AVAILABLE
                if not commits:
                    raise RolledBackError
        except RolledBackError:
            pass
        expected = JobState.CANCELLED if commits else JobState.AVAILABLE
        assert await lab.state(waiting) == expected
        assert (await lab.row(running.id)).cancel_requested is commits

    @needs("native_tx", "tx_finish")
    @pytest.mark.parametrize("commits", [True, False])
    async def test_finish(self, lab: Lab, transaction: Transaction, commits: bool) -> None:
        row = await lab.running()
        finish = Finish(claim_of(row), "complete", output=b"1")
        try:
            async with transaction(lab.driver) as tx:
                outcomes = await lab.driver.unwrap_tx(tx).finish_many([finish])
                assert [outcome.status for outcome in outcomes] == ["DONE"]
                assert await lab.row(row.id) == row
                if not commits:
                    raise RolledBackError
        except RolledBackError:
            pass
        # What the engine sends afterwards to learn how the transaction ended.
        outcome = await lab.finish(row, "retry")
        assert outcome.status == ("ALREADY" if commits else "DONE")
        assert await lab.state(row.id) == (JobState.COMPLETED if commits else JobState.AVAILABLE)

    @needs("native_tx", "tx_finish")
    @rule(14, 3)
    async def test_a_stale_finish_is_told(self, lab: Lab, transaction: Transaction) -> None:
        row = await lab.running()
        await lab.finish(row, "retry")
        async with transaction(lab.driver) as tx:
            inside = lab.driver.unwrap_tx(tx)
            (outcome,) = await inside.finish_many([Finish(claim_of(row), "complete")])
            assert outcome.status == "ALREADY"
        assert await lab.state(row.id) == JobState.AVAILABLE

    @needs("native_tx")
    async def test_without_tx_finish_it_is_refused(
        self, lab: Lab, transaction: Transaction
    ) -> None:
        if lab.capabilities.tx_finish:
            pytest.skip("claimed: tx_finish")
        row = await lab.running()
        with pytest.raises(UnsupportedError, match="tx_finish"):
            async with transaction(lab.driver) as tx:
                await lab.driver.unwrap_tx(tx).finish_many([Finish(claim_of(row), "complete")])

    @needs("native_tx")
    @rule(14, 12)
    async def test_the_commit_stays_the_callers(self, lab: Lab, transaction: Transaction) -> None:
        with pytest.raises(RolledBackError):
            async with transaction(lab.driver) as tx:
                await lab.driver.unwrap_tx(tx).insert_many([lab.job() for _ in range(50)])
                await lab.driver.aclose()
                raise RolledBackError
        other = await lab.another_driver()
        assert await other.executor().count(ListFilter()) == 0


class SyncTransactionTests(Conformance, rule=14):
    """The same for the library's synchronous transactions."""

    @pytest.fixture
    def sync_transaction(self) -> SyncTransaction:
        """For the driver's author: the synchronous twin; see :data:`SyncTransaction`."""
        not_proved("sync_tx", "no fixture sync_transaction")

    @pytest.fixture
    def idle_sync_connection(self) -> Any:
        """For the driver's author: of the transaction type, or its connection, but in none."""
        not_proved(
            "unwrap_sync_tx refuses what is in no transaction", "no fixture idle_sync_connection"
        )

    @lacks("sync_tx")
    async def test_sync_without_the_capability_it_is_refused(self, lab: Lab) -> None:
        with pytest.raises(UnsupportedError, match="sync_tx"):
            lab.driver.unwrap_sync_tx(object())

    @needs("sync_tx")
    async def test_sync_what_is_no_transaction_is_refused(self, lab: Lab) -> None:
        for stranger in (object(), None, "BEGIN"):
            with pytest.raises(ConfigurationError, match="tx"):
                lab.driver.unwrap_sync_tx(stranger)

    @needs("sync_tx")
    async def test_sync_what_is_in_no_transaction_is_refused(
        self, lab: Lab, idle_sync_connection: Any
    ) -> None:
        with pytest.raises(ConfigurationError, match="tx"):
            lab.driver.unwrap_sync_tx(idle_sync_connection).insert_many([lab.job()])
        assert await lab.executor.count(ListFilter()) == 0

    @needs("sync_tx")
    async def test_sync_a_commit_shows_the_jobs(
        self, lab: Lab, sync_transaction: SyncTransaction
    ) -> None:
        jobs = [lab.job() for _ in range(3)]
        with sync_transaction(lab.driver) as tx:
            results = lab.driver.unwrap_sync_tx(tx).insert_many(jobs)
            batch = lab.capabilities.sync_tx == "batch"
            assert [r.status for r in results] == ["PENDING" if batch else "INSERTED"] * 3
            assert await lab.executor.count(ListFilter()) == 0
        await lab.let_appear()
        assert ids(await (await lab.session()).fetch()) == [job.id for job in jobs]

    @needs("sync_tx")
    async def test_sync_a_rollback_leaves_nothing(
        self, lab: Lab, sync_transaction: SyncTransaction
    ) -> None:
        waiting = await lab.add()
        with pytest.raises(RolledBackError), sync_transaction(lab.driver) as tx:
            inside = lab.driver.unwrap_sync_tx(tx)
            inside.insert_many([lab.job()])
            inside.cancel_many([waiting])
            raise RolledBackError
        assert await lab.executor.count(ListFilter()) == 1
        assert await lab.state(waiting) == JobState.AVAILABLE

    @needs("sync_tx")
    async def test_sync_cancel(self, lab: Lab, sync_transaction: SyncTransaction) -> None:
        waiting = await lab.add()
        with sync_transaction(lab.driver) as tx:
            lab.driver.unwrap_sync_tx(tx).cancel_many([waiting])
        (answer,) = await lab.executor.change_many([Change(waiting, "cancel")])
        assert answer.status == "ALREADY"

    @needs("unique_jobs", sync_tx="interactive")
    @rule(14, 6)
    async def test_sync_a_duplicate_does_not_abort_it(
        self, lab: Lab, sync_transaction: SyncTransaction
    ) -> None:
        holder = await lab.add(unique_key=KEY)
        with sync_transaction(lab.driver) as tx:
            inside = lab.driver.unwrap_sync_tx(tx)
            results = inside.insert_many([lab.job(), lab.job(unique_key=KEY), lab.job()])
            assert [r.holder for r in results] == [None, holder, None]
            inside.insert_many([lab.job()])
        assert await lab.executor.count(ListFilter()) == 4

    @needs("sync_tx", "tx_finish")
    @pytest.mark.parametrize("commits", [True, False])
    async def test_sync_finish(
        self, lab: Lab, sync_transaction: SyncTransaction, commits: bool
    ) -> None:
        row = await lab.running()
        try:
            with sync_transaction(lab.driver) as tx:
                inside = lab.driver.unwrap_sync_tx(tx)
                (outcome,) = inside.finish_many([Finish(claim_of(row), "complete")])
                assert outcome.status == "DONE"
                if not commits:
                    raise RolledBackError
        except RolledBackError:
            pass
        outcome = await lab.finish(row, "retry")
        assert outcome.status == ("ALREADY" if commits else "DONE")
