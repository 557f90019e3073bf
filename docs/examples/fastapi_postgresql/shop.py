"""A FastAPI application on PostgreSQL: an order and its e-mail in one transaction, and its worker.

    pip install goncordia-driver-pg "goncordia-core[cli]" fastapi uvicorn
    export DATABASE_URL=postgresql://localhost/shop
    goncordia migrate --url $DATABASE_URL
    uvicorn shop:app                                      # the application
    goncordia worker shop:registry --url $DATABASE_URL    # the worker, as often as you like

The application enqueues and the workers work, each in processes of their own.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

import asyncpg
from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel

from goncordia import Client, Job, NotFoundError, Registry
from goncordia_driver_pg import AsyncpgDriver, AsyncpgTx

DATABASE_URL = os.environ.get("DATABASE_URL", "postgresql://localhost/shop")

# --- the jobs and their workers -------------------------------------------------------------------


@dataclass
class SendConfirmation:
    kind: ClassVar[str] = "send_confirmation"
    order_id: int
    email: str


class Services:
    """What all workers of a process share: the database, and what stands for a mail server."""

    def __init__(self, pool: "asyncpg.Pool[Any]") -> None:
        self.pool = pool
        self.sent: list[str] = []

    async def send(self, to: str, text: str, key: str) -> None:
        """Send it, unless one with this key was sent."""
        self.sent.append(f"{to}: {text}")


@asynccontextmanager
async def services() -> AsyncIterator[Services]:
    async with asyncpg.create_pool(DATABASE_URL, min_size=1) as pool:
        yield Services(pool)


registry = Registry(lifespan=services)


@registry.worker(SendConfirmation, max_attempts=5, timeout=30)
async def send_confirmation(job: Job[SendConfirmation, Services]) -> None:
    # The e-mail is outside of the database: the same job may send it twice, hence the key.
    text = f"thank you for order {job.args.order_id}"
    await job.app.send(job.args.email, text, key=str(job.id))
    async with job.app.pool.acquire() as connection, connection.transaction():
        await connection.execute(
            "UPDATE orders SET confirmed = true WHERE id = $1", job.args.order_id
        )
        await job.complete_tx(connection)  # what is written and the job's end commit together


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


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with asyncpg.create_pool(DATABASE_URL, min_size=1) as pool, AsyncpgDriver(pool) as driver:
        await pool.execute(
            "CREATE TABLE IF NOT EXISTS orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
            " item text NOT NULL UNIQUE, confirmed boolean NOT NULL DEFAULT false)"
        )
        app.state.pool = pool
        app.state.client = Client(driver)
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/orders", status_code=201)
async def place_order(order: NewOrder, request: Request) -> PlacedOrder:
    client: Client[AsyncpgTx] = request.app.state.client
    try:
        async with request.app.state.pool.acquire() as connection, connection.transaction():
            order_id: int = await connection.fetchval(
                "INSERT INTO orders (item) VALUES ($1) RETURNING id", order.item
            )
            job = await client.enqueue_tx(connection, SendConfirmation(order_id, order.email))
    except asyncpg.UniqueViolationError:
        raise HTTPException(409, f"{order.item} is sold") from None
    return PlacedOrder(order_id=order_id, job_id=job.id)


@app.get("/jobs/{job_id}")
async def job_status(job_id: UUID, request: Request) -> JobStatus:
    client: Client[AsyncpgTx] = request.app.state.client
    try:
        job = await client.get(job_id)
    except NotFoundError:
        raise HTTPException(404, "there is no such job") from None
    return JobStatus(state=job.state, attempt=job.attempt)
