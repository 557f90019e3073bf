"""Rule 10: what is stored comes back as it was, byte for byte."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias
from uuid import UUID

import pytest

from goncordia.driver import NO_TIMEOUT, AttemptError, Mark
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, claim_of, failure
from goncordia_conformance.marks import needs, not_proved

__all__ = ["PayloadTests", "StoredArgs"]

StoredArgs: TypeAlias = Callable[[UUID], Awaitable[object]]
"""Reads a job's args as the database's own shell would show them."""

JSON = {
    "empty object": b"{}",
    "keys in their order": b'{"b":1,"a":2,"B":3}',
    "the same key twice": b'{"a":1,"a":2}',
    "spaces": b' { "a" : [ 1 , 2 ] }\n',
    "escaped NUL": b'{"a":"\\u0000"}',
    "lone surrogate": b'{"a":"\\ud800"}',
    "emoji": '{"a":"😀 🜁 ﷽ é é"}'.encode(),
    "integers past 64 bits": b'{"a":9223372036854775808,"b":-99999999999999999999999999}',
    "many digits": b'{"a":0.1000000000000000055511151231257827,"b":1e400,"c":-0.0,"d":1E+2}',
    "quotes and slashes": b'{"a":"\\"\\\\\\/\' ; -- %s {} $1 :x ?"}',
    "a bare string": b'"x"',
    "a bare number": b"1",
    "null": b"null",
    "deep": b"[" * 200 + b"]" * 200,
    "DEL and line separators": '"\x7f\u2028\u2029\ufeff"'.encode(),
}
MOST = 64 << 20
"""Larger args than these are not tried, whatever is claimed."""

BINARY = {"all bytes": bytes(range(256)), "empty": b"", "not UTF-8": b"\xff\xfe\x00\x00"}

json_values = pytest.mark.parametrize("value", JSON.values(), ids=JSON.keys())

WORDS = ["ünï", "😀", "a,b", "'quoted\"", "back\\slash", "{a}", "[1]", "%s", "x" * 128]


class PayloadTests(Conformance, rule=10):
    """Args, outputs, checkpoints, errors, tags, meta and every other field."""

    @pytest.fixture
    def stored_args(self) -> StoredArgs:
        """For the driver's author: reads a job's args as the database's own shell shows them."""
        not_proved("args are readable in the database's shell", "no fixture stored_args")

    @json_values
    async def test_json_args(self, lab: Lab, value: bytes) -> None:
        job_id = await lab.add(args=value)
        assert (await lab.row(job_id)).args == value
        session = await lab.session()
        (claimed,) = await session.fetch()
        assert (claimed.args, claimed.content) == (value, "json")
        (held,) = await session.held()
        assert held.args == value

    @pytest.mark.parametrize("value", BINARY.values(), ids=BINARY.keys())
    async def test_a_codec_may_store_any_bytes(self, lab: Lab, value: bytes) -> None:
        job_id = await lab.add(args=value, content="aes-256; v=1")
        (claimed,) = await (await lab.session()).fetch()
        assert (claimed.args, claimed.content) == (value, "aes-256; v=1")
        assert await lab.row(job_id) == claimed

    async def test_args_as_large_as_claimed(self, lab: Lab) -> None:
        size = min(lab.capabilities.max_payload, MOST)
        value = b'"' + ("é" * (size // 2 - 1)).encode() + b'"'
        assert size - 2 <= len(value) <= size
        job_id = await lab.add(args=value)
        assert (await lab.row(job_id)).args == value

    @json_values
    async def test_output_and_checkpoint(self, lab: Lab, value: bytes) -> None:
        row = await lab.running()
        await lab.finish(row, "complete", output=value, checkpoint=value)
        after = await lab.row(row.id)
        assert (after.output, after.checkpoint) == (value, value)

    @needs("marks")
    @json_values
    async def test_checkpoint_by_mark(self, lab: Lab, value: bytes) -> None:
        row = await lab.running()
        await lab.executor.mark_many([Mark(claim_of(row), checkpoint=value)])
        assert (await lab.row(row.id)).checkpoint == value

    async def test_large_output_and_checkpoint(self, lab: Lab) -> None:
        value = b'"' + b"x" * ((64 << 10) - 2) + b'"'
        row = await lab.running()
        await lab.finish(row, "complete", output=value, checkpoint=value)
        after = await lab.row(row.id)
        assert (after.output, after.checkpoint) == (value, value)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            *(("tags", tuple(tags)) for tags in ([], WORDS, ["b", "a", "b"])),
            *(("meta", meta) for meta in ({}, {word: word[::-1] for word in WORDS}, {"z": ""})),
            *(("kind", word) for word in WORDS),
            *(("queue", word) for word in WORDS),
            *(("priority", n) for n in (-32768, -1, 0, 32767)),
            *(("max_attempts", n) for n in (None, 1, 2**31 - 1)),
            *(("timeout", s) for s in (None, NO_TIMEOUT, 0.25, 86400.0)),
            *(("payload_version", n) for n in (1, 2, 2**31 - 1)),
        ],
    )
    async def test_field(self, lab: Lab, field: str, value: Any) -> None:
        job_id = await lab.add(**{field: value})
        row = await lab.row(job_id)
        assert getattr(row, field) == value
        assert type(getattr(row, field)) is type(value)
        session = await lab.session()
        (claimed,) = await session.fetch(1, row.queue)
        assert getattr(claimed, field) == value
        assert getattr(await lab.row(job_id), field) == value

    @needs("groups")
    @pytest.mark.parametrize("group", WORDS)
    async def test_group(self, lab: Lab, group: str) -> None:
        row = await lab.running(group=group, group_limit=2**31 - 1)
        assert (row.group, row.group_limit) == (group, 2**31 - 1)
        assert await lab.row(row.id) == row

    @needs("unique_jobs")
    async def test_unique_key_and_hold(self, lab: Lab) -> None:
        for n, hold in enumerate(("active", "until_deleted")):
            key = bytes([n, 0, 255, 39]) * 8
            row = await lab.row(await lab.add(unique_key=key, unique_hold=hold))
            assert (row.unique_key, row.unique_hold) == (key, hold)

    @pytest.mark.parametrize(
        "text",
        ["", "line\nline\ttab", "NUL-like \\u0000", *WORDS[:6], "x" * (8 << 10)],
        ids=lambda text: text[:12].encode("unicode_escape").decode(),
    )
    async def test_errors_come_back(self, lab: Lab, text: str) -> None:
        row = await lab.running()
        error = AttemptError(1, await lab.now(), "mod.Error", text, text, "host-1")
        await lab.finish(row, "retry", error=error)
        assert (await lab.row(row.id)).errors == (error,)
        (again,) = await (await lab.session()).fetch()
        assert again.errors == (error,)

    async def test_errors_keep_their_order(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        errors = [failure(n, await lab.at(-n), f"{n}") for n in range(5)]
        for error in errors:
            await lab.finish(row, "retry", error=error)
            (row,) = await session.fetch()
        assert row.errors == tuple(errors)

    async def test_worker_ids_come_back(self, lab: Lab) -> None:
        for word in WORDS:
            row = await lab.running(await lab.session(worker_id=word))
            assert row.worker_id == word
            assert (await lab.row(row.id)).worker_id == word
            assert word in {info.worker_id for info in await lab.executor.session_list()}

    @json_values
    async def test_args_are_readable_in_the_shell(
        self, lab: Lab, stored_args: StoredArgs, value: bytes
    ) -> None:
        job_id = await lab.add(args=value)
        assert await stored_args(job_id) == value.decode()
