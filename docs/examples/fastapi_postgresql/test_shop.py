"""Tests of the application, of its worker, and of both together, on a database for tests.

    pip install pytest pytest-asyncio httpx
    DATABASE_URL=postgresql://localhost/shop_test pytest

They run under pytest-asyncio in its mode "auto", which is in pytest.ini. The fixtures whose names
begin with ``goncordia_`` come with the package; that of the driver is replaced, so that all others
use this database.
"""

from __future__ import annotations

import asyncpg
import httpx
import pytest_asyncio
from shop import DATABASE_URL, SendConfirmation, app, registry

from goncordia import Client, gontest
from goncordia_driver_pg import AsyncpgDriver

ORDER = {"item": "teapot", "email": "ann@example.com"}


@pytest_asyncio.fixture
async def goncordia_driver():
    async with AsyncpgDriver(DATABASE_URL) as driver:
        await driver.migrate()
        await Client(driver).delete_where(everything=True)
        yield driver


@pytest_asyncio.fixture
async def http(goncordia_driver):  # noqa: ARG001 - it migrates and empties first
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://shop") as http,
    ):
        await app.state.pool.execute("TRUNCATE orders RESTART IDENTITY")
        yield http


async def confirmed() -> list[bool]:
    connection = await asyncpg.connect(DATABASE_URL)
    try:
        return [row[0] for row in await connection.fetch("SELECT confirmed FROM orders")]
    finally:
        await connection.close()


async def test_an_order_and_its_job_come_together(http, goncordia_tracker):
    placed = await http.post("/orders", json=ORDER)
    assert placed.status_code == 201
    (job,) = await goncordia_tracker.require_enqueued(SendConfirmation, 1)
    assert job.args == SendConfirmation(1, "ann@example.com")
    assert placed.json() == {"order_id": 1, "job_id": str(job.info.id)}
    assert await confirmed() == [False]


async def test_an_order_that_is_refused_has_no_job(http, goncordia_tracker):
    await http.post("/orders", json=ORDER)
    await goncordia_tracker.forget()
    refused = await http.post("/orders", json=ORDER)
    assert (refused.status_code, refused.json()) == (409, {"detail": "teapot is sold"})
    await goncordia_tracker.require_not_enqueued(SendConfirmation)


async def test_the_worker_confirms_with_its_own_commit(http, goncordia_driver):
    await http.post("/orders", json=ORDER)
    helper = gontest.WorkerHelper(registry, goncordia_driver)
    result = await helper.work(SendConfirmation(1, "ann@example.com"))
    assert result.state == "completed"
    assert await confirmed() == [True]


async def test_both_together(http, goncordia_worker_pool):
    placed = (await http.post("/orders", json=ORDER)).json()
    async with goncordia_worker_pool(registry) as pool:
        await pool.drain()
    status = await http.get(f"/jobs/{placed['job_id']}")
    assert status.json() == {"state": "completed", "attempt": 1}
    assert await confirmed() == [True]


async def test_there_is_no_such_job(http):
    unknown = await http.get("/jobs/01990000-0000-7000-8000-000000000000")
    assert unknown.status_code == 404
