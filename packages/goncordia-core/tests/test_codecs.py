"""Codecs: args that are stored as something else than JSON."""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from goncordia import (
    Client,
    CodecError,
    ConfigurationError,
    FixedRetry,
    Job,
    JobState,
    PayloadError,
    Registry,
    SyncClient,
    UniqueOpts,
    WorkerPool,
)
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver


@dataclass
class Secret:
    kind: ClassVar[str] = "secret"
    text: str


class Turned:
    """Turns bytes by a number; it must be given the same number to turn them back."""

    def __init__(self, by: int = 1, name: str = "turned") -> None:
        self.name = name
        self._by = by

    def encode(self, kind: str, text: bytes, /) -> bytes:
        return kind.encode() + b":" + bytes([self._by]) + bytes((b + self._by) % 256 for b in text)

    def decode(self, kind: str, stored: bytes, /) -> bytes:
        found, _, rest = stored.partition(b":")
        if found != kind.encode() or rest[0] != self._by:
            raise KeyError("no such key")
        return bytes((b - self._by) % 256 for b in rest[1:])


class Bench:
    def __init__(self) -> None:
        self.clock = MockClock()
        self.driver = MemoryDriver(self.clock)
        self.client = Client(self.driver, codec=Turned())
        self.registry: Registry[Any] = Registry()
        self.seen: list[str] = []

        @self.registry.worker(Secret, retry_policy=FixedRetry(5))
        async def work(job: Job[Secret]) -> None:
            self.seen.append(job.args.text)
            if job.args.text == "more":
                await job.client.enqueue(Secret("child"))

    async def work(self, seconds: float = 30, **settings: Any) -> None:
        async with WorkerPool(self.driver, self.registry, rng=random.Random(1), **settings):
            await self.clock.advance(seconds)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_args_are_stored_by_the_codec_and_read_by_it(bench: Bench) -> None:
    handle = await bench.client.enqueue(Secret("é🙂"))
    job = await bench.client.get(handle)
    assert job.content == "turned"
    assert "é🙂".encode() not in job.raw_args
    await bench.work(codecs=Turned())
    assert bench.seen == ["é🙂"]
    with pytest.raises(PayloadError, match="the args are stored as 'turned', which this client"):
        job.args  # noqa: B018


async def test_in_streams_and_for_synchronous_clients(bench: Bench) -> None:
    await bench.client.enqueue_many([Secret("one"), Secret("two")])
    client = SyncClient(bench.driver, codec=Turned())
    client.enqueue(Secret("three"))
    assert {job.content for job in (await bench.client.list()).jobs} == {"turned"}
    await bench.work(codecs=Turned())
    assert sorted(bench.seen) == ["one", "three", "two"]


async def test_unique_keys_do_not_depend_on_the_codec(bench: Bench) -> None:
    first = await bench.client.enqueue(Secret("same"), unique=UniqueOpts(by_args=True))
    plain = await Client(bench.driver).enqueue(Secret("same"), unique=UniqueOpts(by_args=True))
    assert (plain.id, plain.duplicate) == (first.id, True)


async def test_a_pool_reads_json_and_every_codec_it_has(bench: Bench) -> None:
    await Client(bench.driver).enqueue(Secret("plain"))
    await bench.client.enqueue(Secret("turned"))
    await Client(bench.driver, codec=Turned(7, "other")).enqueue(Secret("other"))
    await bench.work(codecs=[Turned(7, "other"), Turned()])
    assert sorted(bench.seen) == ["other", "plain", "turned"]


async def test_a_pool_leaves_what_it_cannot_read_to_others(bench: Bench) -> None:
    handle = await bench.client.enqueue(Secret("x"))
    await bench.work()
    job = await bench.client.get(handle)
    assert (job.state.finished, job.attempt, bench.seen) == (False, 0, [])


async def test_jobs_enqueue_by_the_first_codec(bench: Bench) -> None:
    await bench.client.enqueue(Secret("more"))
    await bench.work(codecs=[Turned(3, "new"), Turned()])
    assert bench.seen == ["more", "child"]
    assert sorted(job.content for job in (await bench.client.list()).jobs) == ["new", "turned"]


async def test_a_missing_key_fails_the_attempt_and_not_the_job(bench: Bench) -> None:
    handle = await Client(bench.driver, codec=Turned(2)).enqueue(Secret("x"))
    await bench.work(4, codecs=Turned(1))
    job = await bench.client.get(handle)
    assert (job.state, job.attempt) == (JobState.RETRYABLE, 1)
    assert job.errors[0].type == "goncordia.errors.CodecError"
    assert job.errors[0].message == "codec 'turned' failed to decode the stored args: KeyError"
    await bench.work(codecs=Turned(2))
    assert bench.seen == ["x"]


class Lossy(Turned):
    def decode(self, kind: str, stored: bytes, /) -> bytes:
        return super().decode(kind, stored) + b" "


class Broken(Turned):
    def encode(self, kind: str, text: bytes, /) -> bytes:
        raise ValueError(text.decode())


class Texts(Turned):
    def encode(self, kind: str, text: bytes, /) -> Any:
        return text.decode()


@pytest.mark.parametrize(
    ("codec", "message"),
    [
        (Lossy(), "codec 'turned': what it encodes does not come back"),
        (Texts(), "codec 'turned': what it encodes does not come back"),
        (Broken(), "codec 'turned' failed to encode: ValueError"),
    ],
)
async def test_what_would_not_come_back_is_refused(
    bench: Bench, codec: Turned, message: str
) -> None:
    with pytest.raises(CodecError) as caught:
        await Client(bench.driver, codec=codec).enqueue(Secret("x"))
    assert (str(caught.value), caught.value.kind) == (message, "secret")
    assert await bench.client.count() == 0


async def test_the_limit_holds_for_what_is_stored(bench: Bench) -> None:
    class Blown(Turned):
        def encode(self, kind: str, text: bytes, /) -> bytes:
            return text * 3

        def decode(self, kind: str, stored: bytes, /) -> bytes:
            return stored[: len(stored) // 3]

    client = Client(bench.driver, codec=Blown())
    await client.enqueue(Secret("x" * 300_000))
    with pytest.raises(PayloadError, match="bytes of args by codec 'turned' are more than the"):
        await client.enqueue(Secret("x" * 400_000))


async def test_compression(bench: Bench) -> None:
    class Compressed:
        name = "zlib"

        def encode(self, kind: str, text: bytes, /) -> bytes:
            return zlib.compress(text)

        def decode(self, kind: str, stored: bytes, /) -> bytes:
            return zlib.decompress(stored)

    handle = await Client(bench.driver, codec=Compressed()).enqueue(Secret("x" * 10_000))
    assert len((await bench.client.get(handle)).raw_args) < 100
    await bench.work(codecs=Compressed())
    assert bench.seen == ["x" * 10_000]


@pytest.mark.parametrize(
    ("codec", "message"),
    [
        (5, "codec: 5 is not a Codec: a name, encode(kind, text) and decode(kind, stored)"),
        (Turned, "is not a Codec"),
        (Turned(name="json"), "codec: name: 'json' is taken; choose another"),
        (Turned(name=""), "codec: name: '' is empty"),
        (Turned(name="x" * 65), "codec: name: "),
    ],
)
def test_what_is_no_codec_is_refused(bench: Bench, codec: Any, message: str) -> None:
    for make in (Client, SyncClient):
        with pytest.raises(ConfigurationError) as caught:
            make(bench.driver, codec=codec)
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("codecs", "message"),
    [
        (5, "codecs: 5 is not a Codec: a name, encode(kind, text) and decode(kind, stored); or a"),
        ([5], "codecs[0]: 5 is not a Codec"),
        ([Turned(), Turned(2)], "codecs[1]: a second codec is named 'turned'"),
    ],
)
def test_a_pool_checks_its_codecs(bench: Bench, codecs: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        WorkerPool(bench.driver, bench.registry, codecs=codecs)
    assert str(caught.value).startswith(message)
