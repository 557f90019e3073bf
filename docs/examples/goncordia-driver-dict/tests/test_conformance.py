"""The whole kit over the example."""

from __future__ import annotations

from functools import partial

import pytest
from goncordia_driver_dict import DictDriver, Store

from goncordia_conformance import DriverConformance


class TestDictDriver(DriverConformance):
    @pytest.fixture
    def make_driver(self) -> partial[DictDriver]:
        return partial(DictDriver, Store())
