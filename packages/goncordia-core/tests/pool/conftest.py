from __future__ import annotations

import pytest

from .kit import Kit


@pytest.fixture
async def kit() -> Kit:
    return Kit()
