"""The kit over the memory driver."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import ClassVar

import pytest

from goncordia.memory import MemoryDriver
from goncordia_conformance import CostOf, DriverConformance, Lab, SyncTransaction, Transaction
from goncordia_conformance.machine import Arena
from goncordia_conformance.rules.machine import StateMachineTests
from goncordia_conformance.selftest import MemoryStores, memory_cost

EMBEDDED = "the store is in this process: its clock is the client's"
A_TX = "a MemoryTx is a transaction, from its beginning to its end"
QUICK = "no operation waits for another for long"
IN_PROCESS = "there is no way to memory that could break"
ONE_PROCESS = "the store is in the memory of one process"


class TestMemory(DriverConformance):
    not_applicable: ClassVar[Mapping[str, str]] = {
        "test_a_skewed_client_does_not_move_the_time": EMBEDDED,
        "test_a_skewed_client_starts_jobs_when_they_are_due": EMBEDDED,
        "test_a_skewed_client_steals_no_claims": EMBEDDED,
        "test_an_unreachable_backend": "memory is always there",
        "test_a_busy_backend": QUICK,
        "test_what_a_busy_backend_did_not_apply_is_not_there": QUICK,
        "test_what_was_not_applied_is_not_there": IN_PROCESS,
        "test_nor_is_what_synchronous_code_did_not_apply": IN_PROCESS,
        "test_nor_is_what_a_frozen_backend_did_not_apply": IN_PROCESS,
        "test_args_are_readable_in_the_shell": "there is no shell",
        "test_claimed_it_is_one_commit": "there is no commit",
        "test_an_older_schema_must_be_migrated": "there is no schema",
        "test_a_schema_that_is_too_new_is_refused": "there is no schema",
        "test_workers_go_on_through_an_upgrade": "there is no schema",
        "test_in_processes": ONE_PROCESS,
        "test_ten_processes_migrate_at_once": ONE_PROCESS,
        "test_killed_workers_lose_nothing": ONE_PROCESS,
        "test_killed_pools_lose_nothing": ONE_PROCESS,
        "test_a_rate_outlives_a_killed_pool": ONE_PROCESS,
        "test_slots_of_a_key_come_back_from_killed_pools": ONE_PROCESS,
        "test_a_leader_that_was_frozen_fires_nothing_again": ONE_PROCESS,
        "test_a_killed_insert_leaves_whole_batches": ONE_PROCESS,
        "test_what_is_in_no_transaction_is_refused": A_TX,
        "test_sync_what_is_in_no_transaction_is_refused": A_TX,
        "test_what_was_passed_in_stays_open": "nothing can be passed in",
    }

    @pytest.fixture
    def make_driver(self) -> MemoryStores:
        return MemoryStores()

    @pytest.fixture
    def cost_of(self, lab: Lab) -> CostOf:
        return memory_cost(lab)

    @pytest.fixture
    def transaction(self) -> Transaction:
        return MemoryDriver.transaction

    @pytest.fixture
    def sync_transaction(self) -> SyncTransaction:
        return MemoryDriver.sync_transaction


class SeededArena(Arena):
    """An arena in which the weak driver's chances are the same in every run."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        drivers = MemoryStores(weak=rng)
        super().__init__(drivers, MemoryDriver.transaction)

    def begin(self) -> None:
        self._rng.seed(0)


class TestWeakMemory(StateMachineTests):
    """The model allows all that a weak driver does, such as late finds and short results."""

    @pytest.fixture
    def make_driver(self) -> MemoryStores:
        return MemoryStores(weak=random.Random(0))

    @pytest.fixture
    def arena(self) -> Arena:
        return SeededArena(random.Random(0))
