"""Callers who do not wait for as long as connecting takes."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

from goncordia.driver import AnyDriver, ListFilter
from goncordia_conformance.proxy import ChaosProxy

__all__ = ["check_hasty", "check_not_entered"]

_SOON = 30.0


async def check_hasty(make: Callable[[str], AnyDriver], url: str) -> None:
    """Cancel a call while it connects: the next one must find that connection, and nothing is said.

    Args:
        make: makes a driver for a URL, with one connection at most.
        url: of a store that is migrated and empty.
    """
    said: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: said.append(context))
    try:
        with ChaosProxy.of(url) as proxy:
            driver = make(proxy.before(url))
            await _cancelled(proxy, driver.ready)
            await driver.ready()
            assert await driver.executor().count(ListFilter()) == 0
            assert proxy.accepted == 1
            await driver.aclose()
        gc.collect()
    finally:
        loop.set_exception_handler(None)
    assert not said


async def check_not_entered(make: Callable[[str], AnyDriver], url: str) -> None:
    """Cancel ``async with driver`` while it connects: that must close what has come of it.

    Args:
        make: makes a driver for a URL.
        url: of any store.
    """
    with ChaosProxy.of(url) as proxy:
        before = asyncio.all_tasks()
        await _cancelled(proxy, make(proxy.before(url)).__aenter__)
        assert asyncio.all_tasks() == before


async def _cancelled(proxy: ChaosProxy, call: Callable[[], Any]) -> None:
    """Call it, and cancel that while the server's answers are held up."""
    proxy.freeze("down")
    calling = asyncio.ensure_future(call())
    async with asyncio.timeout(_SOON):
        while not proxy.accepted:  # noqa: ASYNC110  # it tells nobody
            await asyncio.sleep(0.01)
    calling.cancel()
    await asyncio.wait((calling,))
    assert calling.cancelled()
    proxy.thaw("down")
