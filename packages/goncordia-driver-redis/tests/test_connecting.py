"""Those who do not wait for as long as connecting takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from goncordia_conformance.hasty import check_hasty, check_not_entered
from goncordia_driver_redis import RedisDriver


async def test_who_is_cancelled_leaves_the_connection_to_the_next(
    make: Callable[..., Any], driver: RedisDriver, redis_url: str
) -> None:
    assert driver.prefix  # it has migrated
    await check_hasty(partial(make, pool_size=1), redis_url)


async def test_a_driver_that_is_not_entered_is_closed(
    make: Callable[..., Any], redis_url: str
) -> None:
    await check_not_entered(make, redis_url)
