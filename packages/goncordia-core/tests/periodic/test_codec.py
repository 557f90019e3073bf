"""A scheduler with a codec: what it enqueues is stored as what a client enqueues."""

from __future__ import annotations

import pytest

from goncordia import CodecError, Job, PeriodicJob, Registry, WorkerPool, every

from .kit import Kit, Report


class Turned:
    """Turns the text round; some texts it refuses."""

    name = "turned"

    def __init__(self) -> None:
        self.refuses = b"nothing"

    def encode(self, kind: str, text: bytes, /) -> bytes:
        if self.refuses in text:
            raise ValueError("no key for this one")
        return text[::-1]

    def decode(self, kind: str, stored: bytes, /) -> bytes:
        return stored[::-1]


async def test_what_is_enqueued_is_encoded_and_can_be_worked() -> None:
    kit, seen = Kit(), list[int]()
    registry = Registry()

    @registry.worker(Report)
    async def report(job: Job[Report]) -> None:
        seen.append(job.args.n)

    async with (
        kit.scheduler(PeriodicJob(every(60), Report(7)), codec=Turned()),
        WorkerPool(kit.driver, registry, codecs=Turned()),
    ):
        await kit.clock.advance(65)
    (row,) = await kit.rows()
    assert (row.content, row.args) == ("turned", b'}7:"n"{')
    assert seen == [7]


def test_a_codec_that_fails_is_told_before_anything_is_written() -> None:
    codec = Turned()
    codec.refuses = b"7"
    with pytest.raises(CodecError, match="codec 'turned' failed to encode: ValueError"):
        Kit().scheduler(PeriodicJob(every(60), Report(7)), codec=codec)


async def test_one_that_fails_later_holds_up_no_other_entry(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kit, codec = Kit(), Turned()
    seven, eight = (PeriodicJob(every(60), Report(n), id=str(n), catch_up="all") for n in (7, 8))
    async with kit.scheduler(seven, eight, codec=codec):
        codec.refuses = b"7"
        await kit.clock.advance(125)
        assert (len(await kit.times("7")), len(await kit.times("8"))) == (0, 2)
        codec.refuses = b"nothing"
        await kit.clock.advance(60)
    assert (len(await kit.times("7")), len(await kit.times("8"))) == (3, 3)
    assert "periodic job '7' failed, it is tried again in a minute" in caplog.text
