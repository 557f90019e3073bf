"""The command line on a driver; it takes ``goncordia-core[cli]``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from goncordia.cli import backend
from goncordia.cli.app import app
from goncordia.driver import AnyDriver
from goncordia.ids import new_session_id

__all__ = ["doctor_before_and_after", "goncordia_json"]


def goncordia_json(*words: str) -> tuple[int, Any]:
    """Run a ``goncordia`` command with ``--json``; its exit code, and what it told.

    Args:
        words: the command, and its options but for ``--json``.
    """
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.stderr == ""
    return result.exit_code, msgspec.json.decode(result.stdout)


def doctor_before_and_after(
    make: Callable[[], AnyDriver], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Let ``goncordia doctor`` see a store before its migration, and then with one open session.

    Before, its only finding must be the error that tells to migrate.

    Args:
        make: makes a driver on the store, which is not migrated; each time one more.
        monkeypatch: pytest's; the URL ``store://`` leads to the driver.

    Returns:
        What it said afterwards: ``findings``, ``workers`` and all else.
    """

    def connect(_: str) -> AnyDriver:
        return make()

    monkeypatch.setattr(backend, "connect", connect)
    words = ("doctor", "--url", "store://")
    code, before = goncordia_json(*words)
    (finding,) = before["findings"]
    assert (code, finding["level"]) == (1, "error")
    assert "migrate" in finding["message"]

    async def work() -> None:
        async with make() as driver:
            await driver.migrate()
            await driver.ready()
            await driver.executor().session_open(new_session_id(), "w", 60)

    asyncio.run(work())
    _, after = goncordia_json(*words)
    assert after["workers"] == 1
    assert abs(after["clock_skew"]) < 5
    _, pools = goncordia_json("workers", *words[1:])
    assert [pool["worker_id"] for pool in pools["workers"]] == ["w"]
    found: dict[str, Any] = after
    return found
