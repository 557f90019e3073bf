"""A driver that was used, in a fork of its process."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest

from goncordia_conformance.forks import check_fork


@pytest.mark.parametrize("synchronous", [False, True])
async def test_it_is_refused(redis_url: str, redis_prefix: str, synchronous: bool) -> None:
    url = f"{redis_url}?prefix={quote(redis_prefix)}"
    await asyncio.to_thread(check_fork, url, synchronous=synchronous)
