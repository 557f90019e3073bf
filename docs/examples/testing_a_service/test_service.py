"""Tests of the service, of its worker, and of both together.

The fixtures whose names begin with ``goncordia_`` come with the package. The tests run under
pytest-asyncio, ``pip install pytest pytest-asyncio``, whose mode is ``auto`` in the file pytest.ini
beside this one: in its other mode each test needs a ``@pytest.mark.asyncio``. Under anyio they are
the same, with ``@pytest.mark.anyio``.
"""

from __future__ import annotations

import pytest
from service import Accounts, AskForFeedback, SendWelcome, registry, send_welcome

from goncordia import Discard, gontest


class Outbox:
    """A mailer that keeps what is sent, and fails as often as it is told."""

    def __init__(self, failures: int = 0) -> None:
        self.sent: list[tuple[str, str]] = []
        self.failures = failures

    async def send(self, to: str, text: str) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the mail server is away")
        self.sent.append((to, text))


# --- the service: what does it enqueue? -----------------------------------------------------------


async def test_registering_enqueues_one_welcome(goncordia_client, goncordia_tracker):
    await Accounts(goncordia_client).register("ann@example.com")
    (welcome,) = await goncordia_tracker.require_enqueued(SendWelcome, 1, queue="mail")
    assert welcome.args.email == "ann@example.com"
    await goncordia_tracker.require_not_enqueued(AskForFeedback)


# --- the worker: what does it do? -----------------------------------------------------------------


async def test_the_worker_is_a_function():
    outbox = Outbox()
    await send_welcome(gontest.job(SendWelcome("ann@example.com"), app=outbox))
    assert outbox.sent == [("ann@example.com", "welcome")]
    with pytest.raises(Discard):
        await send_welcome(gontest.job(SendWelcome("ann"), app=outbox))


async def test_an_attempt_with_everything_around_it():
    helper = gontest.WorkerHelper(registry, app=Outbox(failures=1))
    result = await helper.work(SendWelcome("ann@example.com"))
    assert result.state == "retryable"
    assert isinstance(result.error, ConnectionError)
    result = await helper.attempt(result.info)
    assert result.state == "completed"
    await gontest.Tracker(helper.client).require_enqueued(AskForFeedback, 1)


# --- both together --------------------------------------------------------------------------------


async def test_inline(goncordia_driver):
    outbox = Outbox(failures=2)  # the retries come at once
    client = gontest.InlineClient(goncordia_driver, registry, app=outbox)
    await Accounts(client).register("ann@example.com")
    assert outbox.sent == [("ann@example.com", "welcome")]


async def test_a_week_passes(goncordia_clock, goncordia_client, goncordia_worker_pool):
    outbox = Outbox(failures=1)
    await Accounts(goncordia_client).register("ann@example.com")
    async with goncordia_worker_pool(registry, app=outbox, queues=["mail", "default"]):
        await goncordia_clock.advance(59)
        assert outbox.sent == []
        await goncordia_clock.advance(2)
        assert outbox.sent == [("ann@example.com", "welcome")]
    await goncordia_clock.advance(7 * 86400)
    async with goncordia_worker_pool(registry, app=outbox) as pool:
        await pool.drain()
    assert outbox.sent[1:] == [("ann@example.com", "how do you like it?")]
