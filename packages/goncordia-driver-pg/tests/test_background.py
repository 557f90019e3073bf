from __future__ import annotations

import asyncio
import threading

from goncordia_driver_pg.background import Background


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
