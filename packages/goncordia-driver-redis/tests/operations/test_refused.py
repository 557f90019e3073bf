"""An insert that is refused in its middle writes nothing: a right is missing, or a key not ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pytest
import redis

from goncordia.driver import After, Change, NewJob
from goncordia_driver_redis.wire.layout import NUMBERS

FULL = NUMBERS["CHUNK_SIZE"] // 16

COMMANDS = (
    "+@read", "+append", "+del", "+hdel", "+msetnx", "+sadd", "+set", "+zadd", "+spublish",
)  # fmt: skip
KEYS = ("j:*", "u:*", "l:*", "h:*", "hq:*", "hg:*", "gl:*", "gq:*", "w:*", "i*", "qs", "told")
RULES = (*COMMANDS, *(f"%W~{{goncordia}}:{key}" for key in KEYS), "&{goncordia}:wake")
ALWAYS = ("~{goncordia}:", "%R~{goncordia}:*", "+evalsha", "+script|load", "+script|exists")
SELECTOR = "(+zrem %W~{goncordia}:l:*:g:* %W~{goncordia}:w:*)"


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


def _split(bare: Any) -> Jobs:
    """One for a chunk that is to be cut in two with it."""
    jobs = [bare.job() for _ in range(2 * FULL + 1)]
    for part in (jobs[:FULL:-1], jobs[FULL:0:-1]):
        bare(bare.ops.insert_many(part))
    return jobs[:1]


def _before_all(bare: Any) -> Jobs:
    """One whose id is below all chunks of the index."""
    jobs = [bare.job() for _ in range(FULL + 2)]
    bare(bare.ops.insert_many(jobs[1:]))
    bare.add()
    bare(bare.ops.change_many([Change(job.id, "delete") for job in jobs[1:]]))
    return jobs[:1]


def _spread(bare: Any) -> Jobs:
    """Some for several chunks of the index."""
    jobs = [bare.job() for _ in range(FULL + 99)]
    bare(bare.ops.insert_many([*jobs[1:50], *jobs[51:-2], jobs[-1]]))
    return [jobs[0], jobs[50], jobs[-2]]


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
    _known, _new, _ranked, _first, _later, _much_later, _untold, _one_too_many, _split,
    _before_all, _many, _too_many, _spread, _keyed, _grouped,
]  # fmt: skip
SMALL = [_known, _new, _ranked, _untold]


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


Refused = Callable[..., bool]


@pytest.fixture
def refused(bare: Any) -> Refused:
    """Whether an insert is refused to somebody, which then has written nothing."""

    def refused(client: Any, jobs: Jobs) -> bool:
        before = bare.packed()
        admin, bare.client = bare.client, client
        said = _said(bare, jobs)
        bare.client = admin
        if said:
            assert re.search("NOPERM|permission|can't|WRONGTYPE", said)
            assert bare.packed() == before
        return bool(said)

    return refused


@pytest.mark.parametrize("rule", RULES)
def test_without_a_right(
    bare: Any, user: Any, audit: Callable[[Any], None], refused: Refused, rule: str
) -> None:
    count = 0
    with user(*ALWAYS, *(each for each in RULES if each != rule), SELECTOR) as client:
        for case in CASES:
            bare.client.flushall()
            count += refused(client, case(bare))
            audit(bare)
    assert count


@pytest.mark.parametrize("case", [_known, _untold])
def test_without_two_rights(
    bare: Any, user: Any, audit: Callable[[Any], None], refused: Refused, case: Any
) -> None:
    for pair in combinations(RULES, 2):
        bare.client.flushall()
        with user(*ALWAYS, *(each for each in RULES if each not in pair), SELECTOR) as client:
            refused(client, case(bare))
        audit(bare)


@pytest.mark.parametrize("command", ["sismember", "zrevrangebylex", "zscore"])
def test_without_a_command_that_reads(
    bare: Any, user: Any, audit: Callable[[Any], None], refused: Refused, command: str
) -> None:
    with user(*ALWAYS, *RULES, f"-{command}", SELECTOR) as client:
        for case in CASES:
            bare.client.flushall()
            jobs = case(bare)
            # A line of groups is not asked for its first.
            assert refused(client, jobs) or (case, command) == (_grouped, "zscore")
            audit(bare)


def test_a_group_whose_first_is_gone(bare: Any, user: Any, refused: Refused) -> None:
    """An insert takes that one out of the group, if it may, and shows the next."""
    group: dict[str, Any] = {"group": "g", "group_limit": 1}
    gone, left = bare.add(**group), bare.add(**group)
    bare.client.delete(bare.key(b"j:" + gone.bytes))
    job = bare.job(**group)
    with user(*ALWAYS, *RULES, "(+zrem %W~{goncordia}:l:*:g:*)") as client:
        assert refused(client, [job])
    with user(*ALWAYS, *RULES, SELECTOR) as client:
        assert not refused(client, [job])
    bare.open()
    assert [row.id for row in bare.claim(5)] == [left]


def _spoilt(bare: Any, jobs: Jobs) -> Iterator[bytes]:
    """Makes each key that the insert writes another's in turn, but for the job itself."""
    there = bare.packed()
    bare(bare.ops.insert_many(jobs))
    written = {key for key, held in bare.packed().items() if there.get(key) != held}
    # A chunk that is cut begins a new one, under the id of a job: that is nobody's.
    cut = {key for key in written - there.keys() if key[:-16] == bare.key(b"i:")}
    jobs_keys = {bare.key(b"j:" + job.id.bytes) for job in jobs}
    for key in sorted(written - (cut - {bare.key(b"i:" + bytes(16))}) - jobs_keys):
        bare.bring_back(there)
        bare.client.delete(key)
        bare.client.xadd(key, {"a": "b"})
        yield key


@pytest.mark.parametrize("case", CASES)
def test_with_a_key_that_is_not_ours(bare: Any, case: Callable[[Any], Jobs]) -> None:
    jobs = case(bare)
    for key in _spoilt(bare, jobs):
        before = bare.packed()
        assert f"WRONGTYPE {bare.named(key)}" in _said(bare, jobs)
        assert bare.packed() == before


@pytest.mark.parametrize("case", SMALL)
def test_without_a_right_and_with_such_a_key(
    bare: Any, user: Any, refused: Refused, case: Callable[[Any], Jobs]
) -> None:
    jobs = case(bare)
    for _ in _spoilt(bare, jobs):
        for rule in RULES:
            with user(*ALWAYS, *(each for each in RULES if each != rule), SELECTOR) as client:
                assert refused(client, jobs)
