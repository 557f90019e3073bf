"""All the kit's tests in one class."""

from __future__ import annotations

from goncordia_conformance.rules.capabilities import CapabilityTests, ExchangeTests
from goncordia_conformance.rules.changes import ChangeTests
from goncordia_conformance.rules.claim import ClaimTests
from goncordia_conformance.rules.concurrency import ConcurrencyTests
from goncordia_conformance.rules.crash import CrashTests
from goncordia_conformance.rules.errors import ErrorTests
from goncordia_conformance.rules.fencing import FencingTests
from goncordia_conformance.rules.finishing import FinishingTests
from goncordia_conformance.rules.flat import FlatFetchTests
from goncordia_conformance.rules.groups import GroupTests
from goncordia_conformance.rules.leadership import LeadershipTests
from goncordia_conformance.rules.limits import LimitTests
from goncordia_conformance.rules.listing import ListingTests
from goncordia_conformance.rules.machine import StateMachineTests
from goncordia_conformance.rules.migrations import MigrationTests
from goncordia_conformance.rules.order import OrderTests
from goncordia_conformance.rules.ownership import OwnershipTests
from goncordia_conformance.rules.payload import PayloadTests
from goncordia_conformance.rules.pool import PoolTests
from goncordia_conformance.rules.queues import QueueTests
from goncordia_conformance.rules.records import RecordTests
from goncordia_conformance.rules.replay import ReplayTests
from goncordia_conformance.rules.sessions import HeartbeaterTests, SessionTests
from goncordia_conformance.rules.sync import SyncTests
from goncordia_conformance.rules.time import SkewTests, TimeTests
from goncordia_conformance.rules.transactions import SyncTransactionTests, TransactionTests
from goncordia_conformance.rules.uniqueness import UniquenessTests
from goncordia_conformance.rules.wakeups import WakeupTests

__all__ = ["DriverConformance"]


class DriverConformance(
    OrderTests,
    ClaimTests,
    FencingTests,
    FinishingTests,
    ChangeTests,
    SessionTests,
    HeartbeaterTests,
    TimeTests,
    SkewTests,
    UniquenessTests,
    GroupTests,
    FlatFetchTests,
    ReplayTests,
    PayloadTests,
    ErrorTests,
    OwnershipTests,
    MigrationTests,
    CapabilityTests,
    ExchangeTests,
    TransactionTests,
    SyncTransactionTests,
    WakeupTests,
    SyncTests,
    RecordTests,
    ListingTests,
    QueueTests,
    ConcurrencyTests,
    CrashTests,
    StateMachineTests,
    PoolTests,
    LimitTests,
    LeadershipTests,
):
    """What every driver must pass; subclass it with the fixture ``make_driver``."""
