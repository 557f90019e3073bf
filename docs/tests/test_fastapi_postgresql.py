"""docs/examples/fastapi_postgresql: its own tests pass, and its worker works as a process."""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from goncordia import Client
from goncordia_driver_pg import AsyncpgDriver

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "fastapi_postgresql"
SECONDS = 60


@pytest.fixture
def folder(tmp_path: Path, provide: Callable[[str], None]) -> Path:
    provide("pg")
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_its_tests_pass(folder: Path) -> None:
    words = ["-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


async def test_its_worker_is_a_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = os.environ["DATABASE_URL"]
    async with AsyncpgDriver(url) as driver:
        await driver.migrate()
    monkeypatch.syspath_prepend(folder)
    shop = importlib.import_module("shop")
    command = str(Path(sys.executable).parent / "goncordia")
    environment = os.environ | {"PYTHONPATH": "."}
    words = ["worker", "shop:registry", "--url", url]
    worker = await asyncio.create_subprocess_exec(command, *words, cwd=folder, env=environment)
    try:
        transport = httpx.ASGITransport(shop.app)
        async with (
            asyncio.timeout(SECONDS),
            shop.app.router.lifespan_context(shop.app),
            httpx.AsyncClient(transport=transport, base_url="http://shop") as http,
        ):
            order = {"item": "teapot", "email": "ann@example.com"}
            placed = await http.post("/orders", json=order)
            assert placed.status_code == 201
            client: Client[Any] = shop.app.state.client
            await client.wait(UUID(placed.json()["job_id"]))
            orders = await shop.app.state.pool.fetch("SELECT item, confirmed FROM orders")
            assert [tuple(row) for row in orders] == [("teapot", True)]
    finally:
        worker.send_signal(signal.SIGTERM)
        assert await worker.wait() == 0
        del sys.modules["shop"]
