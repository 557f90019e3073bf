"""A key of ours that holds something of another type is refused before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
import redis

from goncordia.driver import Finish, QueueFetch

KEYS = [b"i", b"told", b"h:7:default:work", b"l:0:p:7:default:work", b"i:" + bytes(16)]
GROUP_KEYS = [
    b"gr", b"gl:g", b"w:1:0:7:default:4:work:g", b"gq:7:default:work", b"hg:default",
    b"l:0:g:7:default:work", b"h:7:default:work", b"hq:default",
]  # fmt: skip


def _spoil(bare: Any, name: bytes) -> None:
    bare.client.delete(bare.key(name))
    bare.client.xadd(bare.key(name), {"a": "b"})


def _refused(bare: Any, act: Callable[[], Any]) -> None:
    streams = {key for key in bare.client.keys(b"*") if bare.client.type(key) == b"stream"}

    def rest() -> dict[bytes, bytes]:
        return {key: bare.client.dump(key) for key in bare.client.keys(b"*")}

    assert streams
    before = rest()
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        act()
    assert rest() == before


@pytest.mark.parametrize("name", KEYS)
def test_an_insert_writes_nothing(bare: Any, name: bytes) -> None:
    bare.add()
    _spoil(bare, name)
    _refused(bare, bare.add)


def test_an_insert_into_a_new_queue_writes_nothing(bare: Any) -> None:
    bare.add()
    _spoil(bare, b"qs")
    bare.add()  # its queue is known
    _refused(bare, lambda: bare.add(queue="new"))
    _refused(bare, lambda: bare.add(group="g", group_limit=1))


@pytest.mark.parametrize("name", GROUP_KEYS)
def test_an_insert_of_a_group_writes_nothing(bare: Any, name: bytes) -> None:
    bare.add(group="g", group_limit=1)
    _spoil(bare, name)
    _refused(bare, lambda: bare.add(group="g", group_limit=1))


@pytest.mark.parametrize(
    "name", [b"told", b"r", b"p", b"hq:default", b"h:7:default:work", b"l:0:p:7:default:work"]
)
def test_a_fetch_claims_nothing(bare: Any, name: bytes) -> None:
    bare.open()
    bare.add()
    _spoil(bare, name)
    _refused(bare, bare.claim)


@pytest.mark.parametrize("name", [b"r", b"told", b"se", b"c:" + UUID(int=7).bytes])
def test_an_exchange_finishes_nothing(bare: Any, name: bytes) -> None:
    bare.open()
    bare.add()
    (row,) = bare.claim()
    _spoil(bare, name)
    request = bare.request(row.claim.session, 1, [QueueFetch("default", 1)])
    finish = Finish(row.claim, "complete")
    _refused(bare, lambda: bare(bare.ops.exchange([finish], request)))


def test_a_finish_changes_nothing(bare: Any) -> None:
    bare.open()
    bare.add()
    bare.add()
    one, other = bare.claim(2)
    _spoil(bare, b"j:" + other.id.bytes)
    finishes = [Finish(one.claim, "complete"), Finish(other.claim, "complete")]
    _refused(bare, lambda: bare(bare.ops.finish_many(finishes)))
    bare.client.delete(bare.key(b"j:" + other.id.bytes))
    outcomes = bare(bare.ops.finish_many(finishes))
    assert [each.status for each in outcomes] == ["DONE", "GONE"]


def test_a_batch_with_one_bad_job_is_refused_whole(bare: Any) -> None:
    bare.add(queue="bad")
    _spoil(bare, b"h:3:bad:work")
    _refused(
        bare, lambda: bare(bare.ops.insert_many([bare.job(), bare.job(queue="bad"), bare.job()]))
    )
