"""Those who do not wait for as long as connecting takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from goncordia_conformance.hasty import check_hasty, check_not_entered


async def test_who_is_cancelled_leaves_the_connection_to_the_next(
    make: Callable[..., Any], migrated: str, pg_dsn: str
) -> None:
    await check_hasty(partial(make, schema=migrated, pool_size=1), pg_dsn)


async def test_a_driver_that_is_not_entered_is_closed(
    make: Callable[..., Any], pg_dsn: str
) -> None:
    await check_not_entered(make, pg_dsn)
