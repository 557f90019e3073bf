"""The kit over the memory driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

from goncordia.clock import Clock
from goncordia.memory import MemoryDriver
from goncordia_conformance import DriverConformance
from goncordia_conformance.rules.transactions import SyncTransaction, Transaction

EMBEDDED = "the store is in this process: its clock is the client's"


class OneStore:
    """Makes drivers on one store: that of a memory driver is the driver object itself."""

    def __init__(self) -> None:
        self._drivers: dict[Clock | None, MemoryDriver] = {}

    def __call__(self, clock: Clock | None = None) -> MemoryDriver:
        return self._drivers.setdefault(clock, MemoryDriver(clock))


class TestMemory(DriverConformance):
    not_applicable: ClassVar[Mapping[str, str]] = {
        "test_a_skewed_client_does_not_move_the_time": EMBEDDED,
        "test_a_skewed_client_starts_jobs_when_they_are_due": EMBEDDED,
        "test_a_skewed_client_steals_no_claims": EMBEDDED,
        "test_an_unreachable_backend": "memory is always there",
        "test_a_busy_backend": "no operation waits for another for long",
        "test_args_are_readable_in_the_shell": "there is no shell",
        "test_claimed_it_is_one_commit": "there is no commit",
        "test_an_older_schema_must_be_migrated": "there is no schema",
        "test_a_schema_that_is_too_new_is_refused": "there is no schema",
        "test_workers_go_on_through_an_upgrade": "there is no schema",
        "test_what_was_passed_in_stays_open": "nothing can be passed in",
    }

    @pytest.fixture
    def make_driver(self) -> OneStore:
        return OneStore()

    @pytest.fixture
    def transaction(self) -> Transaction:
        return MemoryDriver.transaction

    @pytest.fixture
    def sync_transaction(self) -> SyncTransaction:
        return MemoryDriver.sync_transaction
