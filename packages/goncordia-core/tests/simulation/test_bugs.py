"""Every bug is noticed: the ledger would also notice if the engine had it."""

from __future__ import annotations

import pytest

from .bugs import BUGS
from .cli import catch

pytestmark = pytest.mark.timeout(600)  # seconds of work, on a machine that may be crowded


@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.within])
def test_the_simulation_notices(name: str) -> None:
    for seed in range(BUGS[name].within):
        verdict = catch(seed, name)
        if verdict is not None:
            print(f"seed {seed}: {', '.join(verdict.broken)}")
            return
    pytest.fail(f"{BUGS[name].within} seeds do not notice that {BUGS[name].rule!r} is broken")
