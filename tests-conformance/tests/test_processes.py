"""Worker processes of the kit: what a test learns when one fails."""

from __future__ import annotations

from functools import partial

import pytest

from goncordia.clock import Clock
from goncordia.driver import AnyDriver
from goncordia_conformance.processes import start_workers


def no_driver(why: str, clock: Clock | None = None) -> AnyDriver:
    raise OSError(why)


async def test_a_worker_that_fails_fails_its_test_and_says_why() -> None:
    async with start_workers(partial(no_driver, "out of luck"), 2, "claim", batch=1) as workers:
        with pytest.raises(AssertionError, match=r"(?s)exit code 1: .*OSError: out of luck"):
            await workers[0].ended()
        with pytest.raises(AssertionError, match=r"(?s)ended early: .*OSError: out of luck"):
            await workers[1].until("ready")
