"""A driver that was used, in a fork of its process."""

from __future__ import annotations

import asyncio

import pytest

from goncordia_conformance.forks import check_fork


@pytest.mark.parametrize(
    ("scheme", "synchronous"),
    [("postgresql", False), ("postgresql+psycopg", False), ("postgresql+psycopg", True)],
)
async def test_it_is_refused(pg_dsn: str, pg_schema: str, scheme: str, synchronous: bool) -> None:
    url = pg_dsn.replace("postgresql", scheme, 1)
    url += ("&" if "?" in url else "?") + f"schema={pg_schema}"
    await asyncio.to_thread(check_fork, url, synchronous=synchronous)
