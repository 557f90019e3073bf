"""A service that enqueues, and the worker of its jobs: what the tests beside it test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from goncordia import Client, Discard, FixedRetry, Job, Registry


@dataclass
class SendWelcome:
    kind: ClassVar[str] = "send_welcome"
    email: str


@dataclass
class AskForFeedback:
    kind: ClassVar[str] = "ask_for_feedback"
    email: str


class Mailer(Protocol):
    """What sends mail; the tests have one of their own."""

    async def send(self, to: str, text: str) -> None: ...


class SmtpMailer:
    async def send(self, to: str, text: str) -> None:
        raise NotImplementedError("no mail server in an example")


@asynccontextmanager
async def lifespan() -> AsyncIterator[Mailer]:
    yield SmtpMailer()


registry = Registry(lifespan=lifespan)


@registry.worker(SendWelcome, retry_policy=FixedRetry(60), max_attempts=3)
async def send_welcome(job: Job[SendWelcome, Mailer]) -> None:
    if "@" not in job.args.email:
        raise Discard(f"{job.args.email!r} is no address")
    await job.app.send(job.args.email, "welcome")
    await job.client.enqueue(AskForFeedback(job.args.email), delay=7 * 86400)


@registry.worker(AskForFeedback)
async def ask_for_feedback(job: Job[AskForFeedback, Mailer]) -> None:
    await job.app.send(job.args.email, "how do you like it?")


class Accounts:
    """The service: it knows a client, and nothing of workers."""

    def __init__(self, client: Client[Any]) -> None:
        self._client = client

    async def register(self, email: str) -> None:
        await self._client.enqueue(SendWelcome(email), queue="mail")
