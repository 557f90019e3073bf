from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from goncordia import Client, ConfigurationError, Registry, SyncClient
from goncordia.gontest import SyncTracker, Tracker, new_client

from .kit import DRIVERS, Resize, SendEmail, Turned

registry = Registry()


@registry.task(kind="greet", queue="mail")
async def greet(name: str) -> None: ...


@pytest.fixture(params=DRIVERS)
def client(request: pytest.FixtureRequest) -> Client[Any]:
    return Client(request.param())


async def test_what_was_enqueued_is_given_typed_and_in_order(client: Client[Any]) -> None:
    tracker = Tracker(client)
    await client.enqueue(SendEmail("ann"), queue="mail", tags=["vip"], priority=3)
    await client.enqueue(Resize(400))
    await client.enqueue(SendEmail("bob"), queue="mail")
    found = await tracker.require_enqueued(SendEmail, 2, queue="mail")
    assert [one.args for one in found] == [SendEmail("ann"), SendEmail("bob")]
    assert found[0].info.priority == 3
    assert [job.kind for job in await tracker.jobs()] == ["send_email", "resize", "send_email"]
    (ann,) = await tracker.enqueued(SendEmail, where=lambda args: args.to == "ann")
    assert ann.args.to == "ann"
    await tracker.require_enqueued(SendEmail)
    await tracker.require_enqueued(SendEmail, 1, tags=["vip"])
    await tracker.require_enqueued(SendEmail, 0, queue="other")
    await tracker.require_not_enqueued(SendEmail, where=lambda args: args.to == "eve")
    assert await tracker.enqueued(greet.args_class) == []


async def test_function_tasks_by_their_args_class(client: Client[Any]) -> None:
    await client.enqueue(greet.args("Ann"))
    (found,) = await Tracker(client).require_enqueued(greet.args_class, 1, queue="mail")
    assert found.args == greet.args("Ann")


async def test_finished_jobs_count_and_forgotten_ones_do_not(client: Client[Any]) -> None:
    tracker = Tracker(client)
    first = await client.enqueue(SendEmail("ann"))
    await client.cancel(first)
    await tracker.require_enqueued(SendEmail, 1)
    await tracker.forget()
    await tracker.require_not_enqueued(SendEmail)
    await client.enqueue(SendEmail("bob"))
    (found,) = await tracker.require_enqueued(SendEmail, 1)
    assert found.args.to == "bob"
    await Tracker(client).require_enqueued(SendEmail, 2)


async def test_a_transaction_that_was_rolled_back_enqueued_nothing() -> None:
    client = new_client()
    tracker = Tracker(client)
    with pytest.raises(LookupError):
        async with client.driver.transaction() as tx:
            await client.enqueue_tx(tx, SendEmail("ann"))
            raise LookupError
    await tracker.require_not_enqueued(SendEmail)
    async with client.driver.transaction() as tx:
        await client.enqueue_tx(tx, SendEmail("ann"))
    await tracker.require_enqueued(SendEmail, 1)


async def test_the_message_shows_what_was_enqueued_instead() -> None:
    client = new_client()
    tracker = Tracker(client)
    await client.enqueue(SendEmail("ann"), queue="slow", tags=["vip", "eu"])
    await client.enqueue(Resize(400), delay=60)
    with pytest.raises(AssertionError) as raised:
        await tracker.require_enqueued(SendEmail, 1, queue="mail")
    assert str(raised.value) == (
        "1 job of kind 'send_email' in queue 'mail' expected, none enqueued; "
        "all that was enqueued:\n"
        "  send_email in 'slow', available, tags vip, eu: SendEmail(to='ann', subject='Hello')"
        "  <- its queue is not 'mail'\n"
        """  resize in 'default', scheduled: {"width":400}"""
    )


async def test_the_message_says_why_each_job_does_not_count() -> None:
    client = new_client()
    tracker = Tracker(client)
    await client.enqueue(SendEmail("ann"))

    def to_bob(args: SendEmail) -> bool:
        return args.to == "bob"

    with pytest.raises(AssertionError, match=r"2 jobs of .* expected, 1 enqueued") as raised:
        await tracker.require_enqueued(SendEmail, 2)
    assert "<-" not in str(raised.value)
    with pytest.raises(AssertionError, match=r"(?s)at least 1 job of .*<- to_bob says no"):
        await tracker.require_enqueued(SendEmail, where=to_bob)
    with pytest.raises(AssertionError, match=r"the lambda in line \d+ says no"):
        await tracker.require_enqueued(SendEmail, where=lambda args: args.to == "eve")
    with pytest.raises(AssertionError, match="it has no tag new, old"):
        await tracker.require_enqueued(SendEmail, 1, tags=["new", "old"])
    with pytest.raises(AssertionError, match="no job of kind 'send_email' expected, 1 enqueued"):
        await tracker.require_not_enqueued(SendEmail)


async def test_nothing_at_all_was_enqueued() -> None:
    with pytest.raises(AssertionError, match=r"none enqueued; nothing at all was enqueued$"):
        await Tracker(new_client()).require_enqueued(SendEmail, 1)


async def test_the_message_is_bounded() -> None:
    client = new_client()
    await client.enqueue_many([SendEmail("x" * 10_000) for _ in range(100)])
    with pytest.raises(AssertionError) as raised:
        await Tracker(client).require_enqueued(Resize, 1)
    assert "(80 older ones)" in str(raised.value)
    assert len(str(raised.value)) < 10_000


async def test_args_of_an_older_shape_are_shown_and_do_not_count() -> None:
    @dataclass
    class Older:
        kind: ClassVar[str] = "resize"
        name: str

    client = new_client()
    await client.enqueue(Older("cat"))
    with pytest.raises(AssertionError, match="do not fit Resize"):
        await Tracker(client).require_enqueued(Resize, 1)


async def test_args_by_a_codec_are_read_with_it() -> None:
    driver = new_client().driver
    client = Client(driver, codec=Turned())
    await client.enqueue(SendEmail("ann"))
    (found,) = await Tracker(client, codecs=Turned()).require_enqueued(SendEmail, 1)
    assert found.args == SendEmail("ann")
    assert SyncTracker(SyncClient(driver), codecs=[Turned()]).enqueued(SendEmail) == [found]

    class Broken(Turned):
        def decode(self, _kind: str, stored: bytes, /) -> bytes:
            raise LookupError

    with pytest.raises(AssertionError, match="codec 'turned' failed to decode"):
        await Tracker(client, codecs=Broken()).require_enqueued(SendEmail, 1)
    with pytest.raises(AssertionError, match="stored as 'turned', which this client cannot read"):
        await Tracker(client).require_enqueued(SendEmail, 1)


async def test_what_the_condition_raises_comes_out() -> None:
    client = new_client()
    await client.enqueue(Resize(0))
    with pytest.raises(ZeroDivisionError):
        await Tracker(client).require_enqueued(Resize, where=lambda args: 1 // args.width)


async def test_bad_input_is_named() -> None:
    client: Any = new_client()
    tracker: Any = Tracker(client)
    with pytest.raises(ConfigurationError, match=r"client: .* is not a Client"):
        Tracker(client.driver)
    with pytest.raises(ConfigurationError, match=r"client: .* is not a SyncClient"):
        SyncTracker(client)
    with pytest.raises(ConfigurationError, match="count: -1 is not a whole number"):
        await tracker.require_enqueued(SendEmail, -1)
    with pytest.raises(ConfigurationError, match="queue: 5 is not a str"):
        await tracker.require_enqueued(SendEmail, queue=5)
    with pytest.raises(ConfigurationError, match="where: 'x' is not a function"):
        await tracker.require_enqueued(SendEmail, where="x")
    with pytest.raises(ConfigurationError, match="tags"):
        await tracker.require_enqueued(SendEmail, tags="vip")
    with pytest.raises(ConfigurationError, match="int"):
        await tracker.require_not_enqueued(int)


@pytest.mark.parametrize("make", DRIVERS)
def test_the_same_for_synchronous_tests(make: Any) -> None:
    with make() as driver:
        client = SyncClient(driver)
        tracker = SyncTracker(client)
        client.enqueue(SendEmail("ann"), queue="mail")
        (found,) = tracker.require_enqueued(SendEmail, 1, queue="mail")
        assert found.args == SendEmail("ann")
        assert [job.kind for job in tracker.jobs()] == ["send_email"]
        assert tracker.enqueued(SendEmail, where=lambda args: args.to == "bob") == []
        with pytest.raises(AssertionError, match="expected, 1 enqueued"):
            tracker.require_enqueued(SendEmail, 2)
        with pytest.raises(AssertionError, match="no job of kind 'send_email' expected"):
            tracker.require_not_enqueued(SendEmail)
        tracker.forget()
        tracker.require_not_enqueued(SendEmail)
