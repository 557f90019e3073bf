"""Connections that threads share, without a server."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from goncordia.errors import DriverBusyError
from goncordia_driver_redis.sync_pool import SyncPool


class Fake:
    """A connection."""

    def __init__(self) -> None:
        self.usable, self.closed = True, False

    def is_usable(self) -> bool:
        return self.usable

    def close(self) -> None:
        self.closed = True


class Maker:
    """Makes them."""

    def __init__(self) -> None:
        self.made: list[Fake] = []
        self.error: Exception | None = None

    def __call__(self) -> Any:
        if self.error is not None:
            raise self.error
        self.made.append(Fake())
        return self.made[-1]


def pool_of(maker: Maker, *, size: int = 2, timeout: float = 60.0) -> SyncPool:
    return SyncPool(maker, size=size, timeout=timeout)


def test_the_last_one_is_used_next() -> None:
    pool = pool_of(maker := Maker())
    first, second = pool.acquire(), pool.acquire()
    pool.release(first, clean=True)
    pool.release(second, clean=True)
    assert pool.acquire() is second
    assert pool.acquire() is first
    assert len(maker.made) == 2


def test_one_on_which_something_went_wrong_is_closed() -> None:
    pool = pool_of(maker := Maker(), size=1)
    link: Any = pool.acquire()
    pool.release(link, clean=False)
    assert link.closed
    assert pool.acquire() is not link
    assert len(maker.made) == 2


def test_one_that_is_not_usable_any_more_is_replaced() -> None:
    pool = pool_of(Maker(), size=1)
    link: Any = pool.acquire()
    pool.release(link, clean=True)
    link.usable = False
    assert pool.acquire() is not link
    assert link.closed


def test_none_is_free_in_time() -> None:
    pool = pool_of(Maker(), size=1, timeout=0.01)
    link = pool.acquire()
    with pytest.raises(DriverBusyError, match="none of the 1 connections was free") as failed:
        pool.acquire()
    assert failed.value.outcome == "not_applied"
    pool.release(link, clean=True)
    assert pool.acquire() is link


@pytest.mark.parametrize("clean", [True, False])
def test_who_waits_gets_the_next(clean: bool) -> None:
    pool = pool_of(maker := Maker(), size=1)
    link = pool.acquire()
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(pool.acquire)
        pool.release(link, clean=clean)
        assert (waiting.result(60) is link) is clean
    assert len(maker.made) == (1 if clean else 2)


def test_a_failure_to_connect_uses_nothing_up() -> None:
    pool = pool_of(maker := Maker(), size=1)
    maker.error = OSError("nobody there")
    for _ in range(3):
        with pytest.raises(OSError, match="nobody there"):
            pool.acquire()
    maker.error = None
    pool.acquire()
    assert len(maker.made) == 1


def test_closed() -> None:
    pool = pool_of(Maker())
    held: Any
    idle: Any
    held, idle = pool.acquire(), pool.acquire()
    pool.release(idle, clean=True)
    pool.close()
    assert idle.closed
    assert not held.closed
    pool.release(held, clean=True)
    assert held.closed


def test_many_threads() -> None:
    pool = pool_of(maker := Maker(), size=3)
    held: set[int] = set()
    lock = threading.Lock()

    def use(number: int) -> None:
        link = pool.acquire()
        with lock:
            assert id(link) not in held
            held.add(id(link))
        with lock:
            held.remove(id(link))
        pool.release(link, clean=number % 7 != 0)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(use, range(500)))
    assert sum(not each.closed for each in maker.made) <= 3
