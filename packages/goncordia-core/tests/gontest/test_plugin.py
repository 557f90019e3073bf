"""The plugin in projects of its users, each a pytest run of its own."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

BODY = """
import pytest
from dataclasses import dataclass
from typing import ClassVar

from goncordia import Client, FixedRetry, Job, Registry


@dataclass
class SendEmail:
    kind: ClassVar[str] = "send_email"
    to: str


registry = Registry()
sent = []


@registry.worker(SendEmail, retry_policy=FixedRetry(60))
async def send_email(job: Job[SendEmail]) -> None:
    if job.args.to == "busy" and job.attempt == 1:
        raise ConnectionError
    sent.append(job.args.to)
"""

ASYNC = """
{mark}
async def test_enqueue(goncordia_client, goncordia_tracker, goncordia_driver):
    assert goncordia_driver.name == "memory"
    await goncordia_client.enqueue(SendEmail("ann"))
    await goncordia_tracker.require_enqueued(SendEmail, 1, where=lambda args: args.to == "ann")


{mark}
async def test_each_test_has_a_driver_of_its_own(goncordia_tracker):
    await goncordia_tracker.require_not_enqueued(SendEmail)


{mark}
async def test_pool(goncordia_client, goncordia_worker_pool):
    sent.clear()
    await goncordia_client.enqueue(SendEmail("bob"))
    async with goncordia_worker_pool(registry) as pool:
        await pool.drain()
    assert sent == ["bob"]


{mark}
async def test_time(goncordia_clock, goncordia_client, goncordia_worker_pool):
    sent.clear()
    job = await goncordia_client.enqueue(SendEmail("busy"), delay=3600)
    async with goncordia_worker_pool(registry):
        await goncordia_clock.advance(3601)
        assert (await goncordia_client.get(job)).state == "retryable"
        await goncordia_clock.advance(60)
    assert sent == ["busy"]


{mark}
async def test_failing(goncordia_client, goncordia_tracker):
    await goncordia_client.enqueue(SendEmail("ann"), queue="slow")
    await goncordia_tracker.require_enqueued(SendEmail, 1, queue="mail")


def test_synchronous(goncordia_sync_client, goncordia_sync_tracker):
    goncordia_sync_client.enqueue(SendEmail("ann"))
    goncordia_sync_tracker.require_enqueued(SendEmail, 1)
"""


def run(folder: Path, *options: str) -> str:
    """What pytest says of the tests in a folder, with these plugins only."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", *options],
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    return done.stdout + done.stderr


def others(*wanted: str) -> list[str]:
    """Switch off every installed plugin but ours and the wanted ones."""
    # What pytest-asyncio warns of where nothing is said.
    scope = ["-o", "asyncio_default_fixture_loop_scope=function"] if "asyncio" in wanted else []
    names = {point.name for point in entry_points(group="pytest11")} - {"goncordia", *wanted}
    return [*scope, *(f"-pno:{name}" for name in sorted(names))]


@pytest.mark.parametrize(
    ("plugin", "mark", "extra"),
    [
        ("asyncio", "@pytest.mark.asyncio", ("-o", "asyncio_mode=strict")),
        ("asyncio", "", ("-o", "asyncio_mode=auto")),
        ("anyio", "@pytest.mark.anyio", ()),
    ],
    ids=["asyncio-strict", "asyncio-auto", "anyio"],
)
def test_the_fixtures_under(plugin: str, mark: str, extra: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import pytest\n\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    )
    (tmp_path / "test_app.py").write_text(BODY + ASYNC.format(mark=mark))
    said = run(tmp_path, *others(plugin), *extra)
    assert "1 failed, 5 passed" in said, said
    assert "FAILED test_app.py::test_failing - AssertionError: 1 job of kind" in said, said
    assert "send_email in 'slow', available: SendEmail(to='ann')" in said, said
    assert "tracker.py" not in said, said  # the traceback ends in the test


@pytest.mark.parametrize("plugin", ["asyncio", "anyio"])
def test_a_project_can_give_its_own_driver_from_an_async_fixture(
    plugin: str, tmp_path: Path
) -> None:
    mark = f"@pytest.mark.{plugin}"
    fixture = "@pytest_asyncio.fixture" if plugin == "asyncio" else "@pytest.fixture"
    (tmp_path / "conftest.py").write_text(f"""
import pytest
from goncordia.memory import MemoryDriver
{"import pytest_asyncio" if plugin == "asyncio" else ""}


@pytest.fixture
def anyio_backend():
    return "asyncio"


class OwnDriver(MemoryDriver):
    name = "own"


{fixture}
async def goncordia_driver():
    async with OwnDriver() as driver:
        await driver.migrate()
        yield driver
""")
    (tmp_path / "test_app.py").write_text(f"""{BODY}

{mark}
async def test_own(goncordia_driver, goncordia_client, goncordia_tracker, goncordia_worker_pool):
    assert goncordia_driver.name == "own"
    sent.clear()
    await goncordia_client.enqueue(SendEmail("ann"))
    await goncordia_tracker.require_enqueued(SendEmail, 1)
    async with goncordia_worker_pool(registry) as pool:
        await pool.drain()
    assert sent == ["ann"]
""")
    said = run(tmp_path, *others(plugin))
    assert "1 passed" in said, said


def test_without_an_async_plugin_synchronous_tests_run(tmp_path: Path) -> None:
    (tmp_path / "test_app.py").write_text(f"""{BODY}
import threading

from goncordia.gontest import SyncInlineClient


def test_synchronous(goncordia_sync_client, goncordia_sync_tracker):
    goncordia_sync_client.enqueue(SendEmail("ann"))
    goncordia_sync_tracker.require_enqueued(SendEmail, 1)


def test_inline(goncordia_driver):
    sent.clear()
    SyncInlineClient(goncordia_driver, registry).enqueue(SendEmail("ann"))
    assert sent == ["ann"]


def test_no_thread_is_left():
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("goncordia")]
""")
    said = run(tmp_path, *others())
    assert "3 passed" in said, said


def test_the_plugin_loads_nothing_before_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("""
import sys


def test_nothing_is_there():
    ours = sorted(name for name in sys.modules if name.partition(".")[0] == "goncordia")
    assert ours == ["goncordia", "goncordia.gontest", "goncordia.gontest.plugin"]
    assert "msgspec" not in sys.modules
    assert "asyncio" not in sys.modules
""")
    said = run(tmp_path, *others())
    assert "1 passed" in said, said


def test_the_fixtures_are_listed_with_what_they_are(tmp_path: Path) -> None:
    said = run(tmp_path, *others(), "--fixtures", "-q")
    for name in ("driver", "client", "tracker", "clock", "worker_pool"):
        assert f"goncordia_{name}" in said, said
    assert "no docstring available" not in said.partition("goncordia_client")[2][:2000]
