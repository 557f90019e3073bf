"""Records: small durable values, changed by compare-and-swap."""

from __future__ import annotations

import asyncio

import pytest

from goncordia.driver import BaseExecutor, PutResult, Record
from goncordia.ids import new_token
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab
from goncordia_conformance.marks import needs, rule

__all__ = ["RecordTests"]


async def _put(executor: BaseExecutor, name: str, value: bytes | None, version: int) -> PutResult:
    return await executor.record_put(name, value, version, new_token())


class RecordTests(Conformance, rule="records"):
    """``record_get``, ``record_put`` and ``record_list``."""

    async def test_what_is_not_there(self, lab: Lab) -> None:
        assert await lab.executor.record_get("a") is None
        assert await lab.executor.record_list("") == []

    async def test_create_and_change(self, lab: Lab) -> None:
        first = await _put(lab.executor, "a", b"1", 0)
        assert first.done
        assert await lab.executor.record_get("a") == Record("a", b"1", first.version)
        second = await _put(lab.executor, "a", b"2", first.version)
        assert second.done
        assert second.version != first.version
        assert await lab.executor.record_get("a") == Record("a", b"2", second.version)

    async def test_the_same_value_is_a_new_version(self, lab: Lab) -> None:
        first = await _put(lab.executor, "a", b"1", 0)
        second = await _put(lab.executor, "a", b"1", first.version)
        assert second.done
        assert second.version != first.version

    async def test_another_version_is_refused(self, lab: Lab) -> None:
        assert await _put(lab.executor, "a", b"1", 5) == PutResult(done=False, version=0)
        assert await lab.executor.record_get("a") is None
        first = await _put(lab.executor, "a", b"1", 0)
        second = await _put(lab.executor, "a", b"2", first.version)
        refused = PutResult(done=False, version=second.version)
        for version in (0, first.version, second.version + 1):
            for value in (b"3", None):
                assert await _put(lab.executor, "a", value, version) == refused
        assert await lab.executor.record_get("a") == Record("a", b"2", second.version)

    async def test_delete(self, lab: Lab) -> None:
        first = await _put(lab.executor, "a", b"1", 0)
        await _put(lab.executor, "b", b"1", 0)
        assert await _put(lab.executor, "a", None, first.version) == PutResult(True, 0)
        assert await lab.executor.record_get("a") is None
        assert [record.name for record in await lab.executor.record_list("")] == ["b"]

    @pytest.mark.parametrize("version", [0, 7])
    async def test_delete_of_what_is_not_there_is_done(self, lab: Lab, version: int) -> None:
        assert await _put(lab.executor, "a", None, version) == PutResult(done=True, version=0)

    async def test_a_version_is_never_given_again(self, lab: Lab) -> None:
        seen: list[int] = []
        for _ in range(3):
            for _ in range(2):
                version = seen[-1] if len(seen) % 2 else 0
                seen.append((await _put(lab.executor, "a", b"1", version)).version)
            await _put(lab.executor, "a", None, seen[-1])
        assert len(set(seen)) == 6
        assert 0 not in seen
        # So what was read before a deletion cannot be taken for what was created after it.
        for version in seen:
            assert not (await _put(lab.executor, "a", b"2", version)).done

    @rule("records", 9)
    async def test_a_repeated_put_is_known_by_its_token(self, lab: Lab) -> None:
        token = new_token()
        put = lab.executor.record_put
        first = await put("a", b"1", 0, token)
        assert await put("a", b"1", 0, token) == first
        assert await lab.executor.record_get("a") == Record("a", b"1", first.version)
        second = await _put(lab.executor, "a", b"2", first.version)
        assert await put("a", b"1", 0, token) == PutResult(done=False, version=second.version)

    @rule("records", 9)
    async def test_a_repeated_delete_is_done(self, lab: Lab) -> None:
        token = new_token()
        first = await _put(lab.executor, "a", b"1", 0)
        for _ in range(2):
            deleted = await lab.executor.record_put("a", None, first.version, token)
            assert deleted == PutResult(done=True, version=0)

    async def test_a_token_is_that_of_one_record(self, lab: Lab) -> None:
        token = new_token()
        assert (await lab.executor.record_put("a", b"1", 0, token)).done
        assert (await lab.executor.record_put("b", b"1", 0, token)).done
        assert [record.name for record in await lab.executor.record_list("")] == ["a", "b"]

    async def test_list_by_prefix(self, lab: Lab) -> None:
        names = ["session/b", "session/a", "session", "cron/%", "cron/_x", "cron/ax", "Session/c"]
        for name in names:
            await _put(lab.executor, name, name.encode(), 0)
        for prefix in ("session/", "cron/", "cron/%", "cron/_", "nothing", "session"):
            found = await lab.executor.record_list(prefix)
            assert [record.name for record in found] == sorted(
                name for name in names if name.startswith(prefix)
            )
            assert all(record.value == record.name.encode() for record in found)

    @pytest.mark.parametrize(
        "value", [b"", b"\x00\xff" * 50, bytes(range(256)) * 256], ids=["empty", "binary", "64KiB"]
    )
    async def test_values_come_back_byte_for_byte(self, lab: Lab, value: bytes) -> None:
        await _put(lab.executor, "a", value, 0)
        record = await lab.executor.record_get("a")
        assert record is not None
        assert record.value == value
        assert await lab.executor.record_list("a") == [record]

    @pytest.mark.parametrize("name", ["n" * 200, "ünï/😀", 'with space\'s "quotes"', "%_\\"])
    async def test_names_come_back(self, lab: Lab, name: str) -> None:
        await _put(lab.executor, name, b"1", 0)
        record = await lab.executor.record_get(name)
        assert record is not None
        assert record.name == name
        assert await lab.executor.record_list(name) == [record]

    async def test_other_drivers_see_it(self, lab: Lab) -> None:
        other = (await lab.another_driver()).executor()
        first = await _put(lab.executor, "a", b"1", 0)
        assert await other.record_get("a") == Record("a", b"1", first.version)
        assert (await _put(other, "a", b"2", first.version)).done
        assert not (await _put(lab.executor, "a", b"3", first.version)).done

    @needs("linearizable")
    @rule("records", 14)
    async def test_no_change_is_lost_under_concurrency(self, lab: Lab) -> None:
        executors = [lab.executor, *[(await lab.another_driver()).executor() for _ in range(3)]]
        await _put(lab.executor, "a", b"0", 0)

        async def add(executor: BaseExecutor) -> None:
            added = 0
            while added < 10:
                record = await executor.record_get("a")
                assert record is not None
                await asyncio.sleep(0)
                value = str(int(record.value) + 1).encode()
                added += (await _put(executor, "a", value, record.version)).done

        async with asyncio.timeout(60):
            await asyncio.gather(*(add(executor) for executor in executors))
        record = await lab.executor.record_get("a")
        assert record is not None
        assert record.value == b"40"
