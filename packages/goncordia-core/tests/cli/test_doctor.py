"""``goncordia doctor``: what every backend's diagnosis has, whatever its driver finds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

import msgspec
import pytest

from goncordia import DriverUnavailableError, MigrationRequiredError, SyncClient
from goncordia.driver import Finding
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver, MemoryTx

from .conftest import Run


def test_a_healthy_backend(run: Run, driver: MemoryDriver) -> None:
    result = run("doctor")
    assert result.exit_code == 0
    assert [line.split(maxsplit=1) for line in result.stdout.splitlines()] == [
        ["driver", driver.name],
        ["clock", "+0.0 s from this machine's"],
        ["workers", "0 pools alive"],
        ["oldest", "due  none"],
        ["nothing", "is wrong"],
    ]


def test_a_backend_that_cannot_be_reached(
    run: Run, driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> list[Finding]:
        raise DriverUnavailableError("cannot connect: refused \x1b[31m")

    monkeypatch.setattr(driver, "check", check)
    result = run("doctor")
    assert result.exit_code == 1
    assert result.stdout == f"driver      {driver.name}\nerror: cannot connect: refused \\x1b[31m\n"
    data = msgspec.json.decode(run("doctor", "--json").stdout)
    assert data == {
        "ok": False,
        "driver": driver.name,
        "findings": [{"level": "error", "message": "cannot connect: refused \x1b[31m"}],
        "clock_skew": None,
        "oldest_due": None,
        "workers": 0,
    }


def test_a_backend_that_cannot_be_written(
    run: Run, driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def record_put(*args: object) -> None:
        raise DriverUnavailableError("attempt to write a readonly database")

    monkeypatch.setattr(driver.executor(), "record_put", record_put)
    result = run("doctor")
    assert result.exit_code == 1
    assert "error: attempt to write a readonly database" in result.stdout


def test_the_backends_clock(
    run: Run, driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def now() -> datetime:
        return driver.clock.now() - timedelta(seconds=90)

    monkeypatch.setattr(driver.executor(), "now", now)
    result = run("doctor")
    assert result.exit_code == 0
    assert "clock       -90.0 s from this machine's\n" in result.stdout
    assert "warning: this machine's clock and the backend's differ by 90 s" in result.stdout


def test_what_the_driver_says_comes_with_errors_first(
    run: Run, driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> list[Finding]:
        return [Finding("warning", "old"), Finding("error", "broken")]

    monkeypatch.setattr(driver, "check", check)
    result = run("doctor")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[4:] == ["error: broken", "warning: old"]


def test_what_comes_of_an_error_is_not_told_again(
    run: Run, driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> list[Finding]:
        return [Finding("error", "no schema")]

    async def verify() -> None:
        raise MigrationRequiredError("no schema")

    monkeypatch.setattr(driver, "check", check)
    monkeypatch.setattr(driver, "verify", verify)
    result = run("doctor")
    assert (result.exit_code, result.stdout.splitlines()[1:]) == (1, ["error: no schema"])


@pytest.mark.usefixtures("driver")
def test_a_registry_that_does_not_import(run: Run) -> None:
    result = run("doctor", "--registry", "absent_app:registry")
    assert result.exit_code == 2
    assert "there is no module 'absent_app'" in result.stderr


@dataclass
class Odd:
    kind: ClassVar[str] = "a b"


@pytest.mark.usefixtures("here")
def test_what_it_advises_can_be_pasted(
    run: Run, driver: MemoryDriver, client: SyncClient[MemoryTx]
) -> None:
    client.enqueue(Odd(), queue="c d")
    assert isinstance(driver.clock, MockClock)
    driver.clock.set(driver.clock.now() + timedelta(seconds=90))
    told = run("doctor", "--registry", "good_app:registry").stdout
    assert "queue 'c d': 1 job is due, the oldest for 90 s: no pool runs; start one" in told
    assert "`goncordia worker --queue 'c d'`" in told
    assert "kind 'a b': 1 job waits" in told
    assert "`goncordia jobs delete --kind 'a b'`" in told
    client.queue_pause("c d")
    assert "`goncordia queues resume 'c d'`" in run("doctor").stdout
