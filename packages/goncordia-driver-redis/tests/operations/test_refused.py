"""An insert that is refused in its middle writes nothing: a right is missing, or a key not ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from goncordia.driver import After, NewJob
from goncordia_driver_redis.wire.layout import NUMBERS

FULL = NUMBERS["CHUNK_SIZE"] // 16

COMMANDS = (
    "+@read", "+append", "+del", "+hdel", "+msetnx", "+sadd", "+set", "+zadd", "+spublish",
)  # fmt: skip
KEYS = ("j:*", "u:*", "l:*", "h:*", "hq:*", "hg:*", "gl:*", "gq:*", "w:*", "i*", "qs", "told")
RULES = (*COMMANDS, *(f"%W~{{goncordia}}:{key}" for key in KEYS), "&{goncordia}:wake")
ALWAYS = ("~{goncordia}:", "%R~{goncordia}:*", "+evalsha", "+script|load", "+script|exists")
SELECTOR = "(+zrem %W~{goncordia}:l:*:g:*)"


Jobs = list[NewJob]


def _known(bare: Any) -> Jobs:
    """One for a line that has others, in a queue that is told."""
    bare.add()
    return [bare.job()]


def _new(bare: Any) -> Jobs:
    """One for a queue of which nothing is known, where there are others."""
    bare.add()
    return [bare.job(queue="new")]


def _ranked(bare: Any) -> Jobs:
    """One of a priority that is new."""
    bare.add()
    return [bare.job(priority=3)]


def _first(bare: Any) -> Jobs:
    """The first of all."""
    return [bare.job()]


def _later(bare: Any) -> Jobs:
    """One for later, which comes before all others of its line."""
    bare.add(run_at=After(50))
    return [bare.job(run_at=After(5), max_attempts=3, tags=("a",))]


def _much_later(bare: Any) -> Jobs:
    bare.add(run_at=After(50))
    return [bare.job(run_at=After(500))]


def _untold(bare: Any) -> Jobs:
    bare.add()
    bare.client.delete(bare.key(b"told"))
    return [bare.job()]


def _one_too_many(bare: Any) -> Jobs:
    """One for a chunk of the index that is full."""
    bare(bare.ops.insert_many([bare.job() for _ in range(FULL)]))
    return [bare.job()]


def _many(bare: Any) -> Jobs:
    bare.add()
    return [bare.job(queue=queue) for queue in ("default", "new", "new", "default")] + [
        bare.job(priority=3)
    ]


def _too_many(bare: Any) -> Jobs:
    bare(bare.ops.insert_many([bare.job() for _ in range(FULL)]))
    return [bare.job() for _ in range(10)]


def _keyed(bare: Any) -> Jobs:
    return [bare.job(unique_key=b"k" * 32)]


def _grouped(bare: Any) -> Jobs:
    bare.add(group="g", group_limit=1, run_at=After(5))
    return [bare.job(group="g", group_limit=1)]


CASES: list[Callable[[Any], Jobs]] = [
    _known, _new, _ranked, _first, _later, _much_later, _untold, _one_too_many, _many, _too_many,
    _keyed, _grouped,
]  # fmt: skip


@pytest.fixture
def user(bare: Any) -> Iterator[Callable[..., Any]]:
    """Becomes a user with these rules."""
    admin = bare.client
    parts = admin.connection_pool.connection_kwargs

    def become(*rules: str) -> Any:
        admin.execute_command("ACL", "SETUSER", "web", "reset", "on", "nopass", *rules)
        return redis.Redis(host=parts["host"], port=parts["port"], username="web", password="x")

    yield become
    admin.execute_command("ACL", "DELUSER", "web")


def _stored(admin: Any) -> dict[bytes, bytes]:
    return {key: admin.dump(key) for key in admin.keys(b"*")}


@pytest.mark.parametrize("case", CASES)
def test_all_rights_are_enough(
    bare: Any, user: Any, audit: Callable[[Any], None], case: Callable[[Any], Jobs]
) -> None:
    jobs = case(bare)
    admin, bare.client = bare.client, user(*ALWAYS, *RULES, SELECTOR)
    assert {each.status for each in bare(bare.ops.insert_many(jobs))} == {"INSERTED"}
    bare.client.close()
    bare.client = admin
    audit(bare)


def _said(bare: Any, jobs: Jobs) -> str:
    """The server's words when it refuses an insert."""
    try:
        bare(bare.ops.insert_many(jobs))
    except redis.ResponseError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("rule", RULES)
def test_without_a_right(bare: Any, user: Any, audit: Callable[[Any], None], rule: str) -> None:
    admin = bare.client
    client = user(*ALWAYS, *(each for each in RULES if each != rule), SELECTOR)
    refused = 0
    for case in CASES:
        admin.flushall()
        jobs = case(bare)
        before = _stored(admin)
        bare.client = client
        said = _said(bare, jobs)
        bare.client = admin
        if said:
            assert re.search("NOPERM|permission|can't", said)
            assert _stored(admin) == before, case
            refused += 1
        audit(bare)
    client.close()
    assert refused


@pytest.mark.parametrize("case", [*CASES[:8], _many])
def test_with_a_key_that_is_not_ours(bare: Any, case: Callable[[Any], Jobs]) -> None:
    """Each that the insert writes, but for those that are the job itself."""
    jobs = case(bare)
    before = set(bare.client.keys(b"*"))
    there = {key: bare.client.dump(key) for key in before}
    bare(bare.ops.insert_many(jobs))
    written = {
        key
        for key, held in _stored(bare.client).items()
        if there.get(key) != held and not key.startswith(bare.key(b"j:"))
    }
    assert written
    # A chunk that is cut begins a new one, under the id of a job that is new: that is nobody's.
    for key in written - {bare.key(b"i:") + job.id.bytes for job in jobs}:
        bare.client.flushall()
        for name, held in there.items():
            bare.client.restore(name, 0, held)
        bare.client.delete(key)
        bare.client.xadd(key, {"a": "b"})
        stored = _stored(bare.client)
        name = re.escape(key.partition(b"\0")[0].decode())  # up to the id in it
        with pytest.raises(redis.ResponseError, match=f"WRONGTYPE {name}"):
            bare(bare.ops.insert_many(jobs))
        assert _stored(bare.client) == stored
