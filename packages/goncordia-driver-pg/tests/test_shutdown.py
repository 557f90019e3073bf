"""``goncordia worker`` is told to end while the database is gone for good."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from urllib.parse import quote

import pytest

from goncordia.driver import NewJob
from goncordia.ids import JobIds
from goncordia_conformance.proxy import ChaosProxy
from goncordia_driver_pg import AsyncpgDriver

APP = """
import asyncio
from dataclasses import dataclass
from typing import ClassVar
from goncordia import Job, Registry

@dataclass
class Work:
    kind: ClassVar[str] = "work"
    ends: bool

registry = Registry()

@registry.worker(Work)
async def work(job: Job[Work]) -> None:
    print("started", flush=True)
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        if not job.args.ends:
            raise
"""

LONG = 60.0
"""Seconds in which it must have ended: its own bounds are at a third of this."""


@pytest.mark.parametrize(
    ("scheme", "silent"), [("postgresql", False), ("postgresql+psycopg", True)], ids=str
)
async def test_it_ends_and_says_what_it_could_not_store(
    asyncpg_driver: AsyncpgDriver,
    pg_dsn: str,
    migrated: str,
    tmp_path: Path,
    scheme: str,
    silent: bool,
) -> None:
    (tmp_path / "shop.py").write_text(APP)
    executor, ids = asyncpg_driver.executor(), JobIds(asyncpg_driver.clock)
    ended, cut_off = ids.take(2)
    await executor.insert_many(
        [
            NewJob(id=ended, kind="work", args=b'{"ends": true}'),
            NewJob(id=cut_off, kind="work", args=b'{"ends": false}'),
        ]
    )
    with ChaosProxy.of(pg_dsn) as proxy:
        url = proxy.before(pg_dsn).replace("postgresql", scheme, 1)
        words = ["worker", "shop:registry", "--shutdown-timeout", "1"]
        words += ["--url", f"{url}?schema={quote(migrated)}"]
        process = await asyncio.create_subprocess_exec(
            *[sys.executable, "-m", "goncordia", *words],
            stdout=PIPE,
            stderr=PIPE,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )
        try:
            async with asyncio.timeout(LONG):
                assert process.stdout is not None
                for _ in range(2):
                    assert await process.stdout.readline() == b"started\n"
                if silent:
                    proxy.freeze()
                else:
                    proxy.refuse()
                    proxy.cut()
                process.send_signal(signal.SIGTERM)
                _, stderr = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        proxy.thaw()
    said = stderr.decode()
    assert process.returncode == 1, said
    assert said.count("is interrupted: shutdown_timeout (1 s) is over") == 2
    assert f"job {ended} (work): the shutdown was over before its result (complete)" in said
    assert f"job {cut_off} (work): the shutdown was over before its result (release)" in said
    assert said.splitlines()[-1].startswith("goncordia: WorkerPool: the shutdown was over")
    # Its session is left to its lease, which will bring the jobs back.
    rows = await executor.get_many([ended, cut_off])
    assert [row is not None and row.state.value for row in rows] == ["running", "running"]
    (session,) = await executor.session_list()
    assert session.open
