"""A FastAPI application on SQLite: an order and its e-mail in one transaction, and who sends it.

    pip install fastapi uvicorn goncordia-driver-sqlite
    uvicorn --app-dir docs/examples fastapi_shop:app
    curl localhost:8000/orders --json '{"item": "cup", "email": "ann@example.com"}'

The worker pool lives in the application's own process and event loop. To have it in a process of
its own, leave it out of the lifespan, and start `goncordia worker fastapi_shop:registry` beside it.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

import aiosqlite
from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel

from goncordia import Client, Job, NotFoundError, Registry, WorkerPool
from goncordia_driver_sqlite import SqliteDriver

# --- the jobs and their workers -------------------------------------------------------------------


@dataclass
class SendConfirmation:
    kind: ClassVar[str] = "send_confirmation"
    order_id: int
    email: str


class Mailer:
    """Stands for what really sends mail: a connection that all workers share."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def send(self, to: str, text: str) -> None:
        self.sent.append(f"{to}: {text}")


@asynccontextmanager
async def mailer() -> AsyncIterator[Mailer]:
    yield Mailer()


registry = Registry(lifespan=mailer)


@registry.worker(SendConfirmation, max_attempts=5, timeout=30)
async def send_confirmation(job: Job[SendConfirmation, Mailer]) -> str:
    await job.app.send(job.args.email, f"thank you for order {job.args.order_id}")
    return job.args.email


# --- the application ------------------------------------------------------------------------------


class NewOrder(BaseModel):
    item: str
    email: str


class PlacedOrder(BaseModel):
    order_id: int
    job_id: UUID


class JobStatus(BaseModel):
    state: str
    attempt: int


def create_app(database: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with SqliteDriver(database) as driver:
            await driver.migrate()
            async with aiosqlite.connect(database) as db:
                await db.execute(
                    "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT UNIQUE)"
                )
                await db.commit()
            app.state.client = Client(driver)
            async with WorkerPool(driver, registry, concurrency=20):
                yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders", status_code=201)
    async def place_order(order: NewOrder, request: Request) -> PlacedOrder:
        client: Client[aiosqlite.Connection] = request.app.state.client
        async with aiosqlite.connect(database) as db:  # what is not committed is rolled back
            try:
                row = await db.execute("INSERT INTO orders (item) VALUES (?)", (order.item,))
            except aiosqlite.IntegrityError:
                raise HTTPException(409, f"{order.item} is sold") from None
            assert row.lastrowid is not None
            job = await client.enqueue_tx(db, SendConfirmation(row.lastrowid, order.email))
            await db.commit()  # the order and its job are there, or neither is
        return PlacedOrder(order_id=row.lastrowid, job_id=job.id)

    @app.get("/jobs/{job_id}")
    async def job_status(job_id: UUID, request: Request) -> JobStatus:
        client: Client[aiosqlite.Connection] = request.app.state.client
        try:
            job = await client.get(job_id)
        except NotFoundError:
            raise HTTPException(404, "there is no such job") from None
        return JobStatus(state=job.state, attempt=job.attempt)

    return app


app = create_app(os.environ.get("SHOP_DATABASE", "shop.db"))
