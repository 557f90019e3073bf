"""Numbers in messages."""

from __future__ import annotations

from goncordia._words import counted


def test_one_and_many() -> None:
    assert [counted(n, "job") for n in (0, 1, 2)] == ["0 jobs", "1 job", "2 jobs"]
    assert [counted(n, "is it", "are they") for n in (1, 2)] == ["1 is it", "2 are they"]
