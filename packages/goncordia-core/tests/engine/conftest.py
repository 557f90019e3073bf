from __future__ import annotations

import pytest

from .stand import Stand


@pytest.fixture
def stand() -> Stand:
    return Stand()
