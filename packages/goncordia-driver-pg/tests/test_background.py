from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from goncordia_driver_pg.background import Background, in_thread


def test_work_goes_on_after_an_event_loop_was_closed_over_it() -> None:
    todo: list[int] = []
    done: list[int] = []

    async def work() -> None:
        await asyncio.sleep(0)
        done.extend(todo)
        todo.clear()

    background = Background(threading.Lock(), lambda: bool(todo), work)

    async def bring(number: int) -> None:
        todo.append(number)
        background.start()

    first = asyncio.new_event_loop()
    first.run_until_complete(bring(1))
    assert done == []
    for task in asyncio.all_tasks(first):
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # that is what is tested
    first.close()

    async def bring_another() -> None:
        await bring(2)
        await background.flush()

    asyncio.run(bring_another())
    assert done == [1, 2]


async def test_whoever_gives_up_waiting_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goncordia_driver_pg.background._FLUSH", 0.01)
    todo, may_end = [1], asyncio.Event()

    async def work() -> None:
        await may_end.wait()
        todo.clear()

    background = Background(threading.Lock(), lambda: bool(todo), work)
    background.start()
    await background.flush()
    task = background._task
    assert task is not None
    may_end.set()
    await task
    assert not todo


async def test_a_thread_of_its_own_needs_none_of_the_loops() -> None:
    free, done = threading.Event(), threading.Event()
    with ThreadPoolExecutor(1) as executor:
        asyncio.get_running_loop().set_default_executor(executor)
        taken = asyncio.create_task(asyncio.to_thread(free.wait))
        await asyncio.sleep(0)
        await in_thread(done.set, 60)
        assert done.is_set()
        free.set()
        await taken


async def test_it_is_waited_for_so_long_at_most() -> None:
    free = threading.Event()
    await in_thread(lambda: void(free.wait()), 0.01)
    assert not free.is_set()
    free.set()


async def test_its_errors_are_raised() -> None:
    def fail() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        await in_thread(fail, 60)


def void(_: object) -> None:
    """Nothing comes of it."""
