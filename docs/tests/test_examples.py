"""The examples of docs/examples that are more than a program which runs and ends."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from goncordia import Client, SyncClient
from goncordia_driver_sqlite import SqliteDriver

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SECONDS = 60


def load(name: str) -> Any:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *words],
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# --- FastAPI --------------------------------------------------------------------------------------


def rows(database: Path, table: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as db:
        return db.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


async def test_fastapi(tmp_path: Path) -> None:
    database = tmp_path / "shop.db"
    app = load("fastapi_shop").create_app(str(database))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://shop") as http,
        asyncio.timeout(SECONDS),
    ):
        client: Client[Any] = app.state.client
        placed = await http.post("/orders", json={"item": "teapot", "email": "ann@example.com"})
        assert placed.status_code == 201
        (job,) = [job async for job in client.list_all()]
        assert placed.json() == {"order_id": 1, "job_id": str(job.id)}
        assert await client.wait(job) == "ann@example.com"
        status = await http.get(f"/jobs/{job.id}")
        assert status.json() == {"state": "completed", "attempt": 1}

        sold = await http.post("/orders", json={"item": "teapot", "email": "bob@example.com"})
        assert (sold.status_code, sold.json()) == (409, {"detail": "teapot is sold"})
        assert await client.count() == 1  # neither the order nor a job
        assert rows(database, "orders") == [(1, "teapot")]

        unknown = await http.get("/jobs/01990000-0000-7000-8000-000000000000")
        assert unknown.status_code == 404
        unfit = await http.post("/orders", json={"item": "teapot"})
        assert unfit.status_code == 422


# --- a script -------------------------------------------------------------------------------------


def test_script(tmp_path: Path) -> None:
    script = str(EXAMPLES / "script.py")
    for name, text in {"a.txt": "one two three", "b.txt": "four"}.items():
        (tmp_path / name).write_text(text)
    assert run(tmp_path, script, "add", "a.txt", "b.txt", "gone.txt") == (
        "3 enqueued, 0 there already\n"
    )
    assert run(tmp_path, script, "add", "a.txt") == "0 enqueued, 1 there already\n"
    assert run(tmp_path, script, "status").splitlines()[0] == "a.txt: available"
    assert run(tmp_path, script, "work") == ""
    assert run(tmp_path, script, "status") == (
        "a.txt: 3 words\nb.txt: 1 words\ngone.txt: the file is gone\n"
    )


# --- kill -9 --------------------------------------------------------------------------------------


def test_long_job(tmp_path: Path) -> None:
    script = str(EXAMPLES / "long_job.py")
    run(tmp_path, script, "start", "20")
    killed: list[str] = []
    words = [sys.executable, script, "work"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            killed.append(line.strip())
            if line == "row 7\n":
                process.kill()
    assert process.returncode == -9
    assert killed[:2] == ["attempt 1 goes on after row 0", "row 1"]
    with SqliteDriver(tmp_path / "import.db") as driver:
        client = SyncClient(driver)
        (job,) = client.list_all()
        assert job.state == "running"  # nobody knows yet
        checkpoint = job.checkpoint
        assert checkpoint >= 7

        said = run(tmp_path, script, "work").splitlines()
        assert said[:2] == [f"attempt 2 goes on after row {checkpoint}", f"row {checkpoint + 1}"]
        (job,) = client.list_all()
        assert (job.state, job.attempt) == ("completed", 2)
        assert job.output == f"{20 - checkpoint} rows in attempt 2"
        assert job.errors[0].type.endswith("WorkerLostError")
    imported = rows(tmp_path / "import.db", "imported")
    assert [row for row, _ in imported] == list(range(1, 21))
    again = [row for row, attempt in imported if attempt == 2 and row <= checkpoint]
    assert again == []


# --- gontest --------------------------------------------------------------------------------------


@pytest.mark.parametrize("plugin", ["asyncio", "anyio"])
def test_testing_a_service(plugin: str, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "testing_a_service", tmp_path, dirs_exist_ok=True)
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    if plugin == "anyio":
        (tmp_path / "pytest.ini").unlink()
        tests = tmp_path / "test_service.py"
        tests.write_text(
            tests.read_text().replace("async def test_", "@pytest.mark.anyio\nasync def test_")
        )
        (tmp_path / "conftest.py").write_text(
            "import pytest\n\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
        )
        words += ["-p", "no:asyncio"]
    assert "5 passed" in run(tmp_path, *words)
