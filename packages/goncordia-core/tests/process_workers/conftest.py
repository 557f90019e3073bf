from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of the tests must be importable in a process of its own."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
