"""All bugs, one for each rule that the engine and the backend keep.

The ledger must notice each of them, or it would not notice when the engine had it.
"""

from __future__ import annotations

from . import bugs_backend, bugs_claims, bugs_cron, bugs_limits, bugs_runs, bugs_session
from .planting import BUGS, Bug, planted

__all__ = [
    "BUGS",
    "Bug",
    "bugs_backend",
    "bugs_claims",
    "bugs_cron",
    "bugs_limits",
    "bugs_runs",
    "bugs_session",
    "planted",
]
