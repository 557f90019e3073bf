"""The conformance kit: the tests that every driver must pass.

Subclass :class:`DriverConformance` with the fixture ``make_driver``; the README shows it whole.
"""

import pytest

# Before the first import of a module with tests, so that their asserts say what was compared.
pytest.register_assert_rewrite("goncordia_conformance.rules", "goncordia_conformance.lab")

# ruff: noqa: E402 - all imports come after the line above
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, MakeDriver, Session
from goncordia_conformance.rules.capabilities import CommitsOf
from goncordia_conformance.rules.errors import Busy, Unreachable
from goncordia_conformance.rules.flat import CostOf
from goncordia_conformance.rules.migrations import SetSchema
from goncordia_conformance.rules.ownership import Borrowed
from goncordia_conformance.rules.payload import StoredArgs
from goncordia_conformance.rules.transactions import SyncTransaction, Transaction
from goncordia_conformance.suite import DriverConformance

__all__ = [
    "Borrowed",
    "Busy",
    "CommitsOf",
    "Conformance",
    "CostOf",
    "DriverConformance",
    "Lab",
    "MakeDriver",
    "Session",
    "SetSchema",
    "StoredArgs",
    "SyncTransaction",
    "Transaction",
    "Unreachable",
]
