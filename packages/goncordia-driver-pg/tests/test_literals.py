"""Arrays as text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from goncordia_driver_pg.literals import array_literal, with_text, with_text_arrays

NOW = datetime(2026, 1, 1, 12, 30, 5, 123456, tzinfo=UTC)
TEXTS = ["", "NULL", "null", '"', "\\", '\\"', "a,b", "{}", "{", " a ", "\n\t", "ä😀", "'", "$1"]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("text", [*TEXTS, None]),
        ("bytea", [b"", b"\0\xff\\", b'"', None]),
        ("uuid", [uuid4(), None]),
        ("timestamptz", [NOW, None]),
        ("float8", [0.1, 1e300, -0.0, float("inf"), None]),
        ("bigint", [0, -(2**63), 2**63 - 1, None]),
        ("text", []),
        ("text", [None]),
    ],
)
async def test_the_server_reads_what_was_written(
    db: asyncpg.Connection, kind: str, values: list[Any]
) -> None:
    query = with_text_arrays(f"SELECT $1::{kind}[]")
    assert query == f"SELECT $1::text::{kind}[]"
    assert await db.fetchval(query, array_literal(values)) == values


def test_what_is_no_array_stays() -> None:
    assert with_text("a") == "a"
    assert with_text(None) is None
    assert with_text(["a"]) == '{"a"}'
    assert with_text_arrays("SELECT $1::text, $2::uuid") == "SELECT $1::text, $2::uuid"
