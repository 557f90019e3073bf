"""The conformance kit: the tests that every driver must pass.

Subclass :class:`DriverConformance` with the fixture ``make_driver``; the README shows it whole.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goncordia_conformance.base import Conformance
    from goncordia_conformance.breaks import Breaks, NetworkLink
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
    "Breaks",
    "Busy",
    "CommitsOf",
    "Conformance",
    "CostOf",
    "DriverConformance",
    "Lab",
    "MakeDriver",
    "NetworkLink",
    "Session",
    "SetSchema",
    "StoredArgs",
    "SyncTransaction",
    "Transaction",
    "Unreachable",
]

_HOMES = {
    "Borrowed": "rules.ownership",
    "Breaks": "breaks",
    "Busy": "rules.errors",
    "CommitsOf": "rules.capabilities",
    "Conformance": "base",
    "CostOf": "rules.flat",
    "DriverConformance": "suite",
    "Lab": "lab",
    "MakeDriver": "lab",
    "NetworkLink": "breaks",
    "Session": "lab",
    "SetSchema": "rules.migrations",
    "StoredArgs": "rules.payload",
    "SyncTransaction": "rules.transactions",
    "Transaction": "rules.transactions",
    "Unreachable": "rules.errors",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import what is asked for: worker processes need none of it, nor Hypothesis."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
