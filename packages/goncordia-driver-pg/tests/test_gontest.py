"""The test helpers on PostgreSQL, with either library."""

from __future__ import annotations

from goncordia_conformance.helpers import HelperTests


class TestHelpers(HelperTests):
    """With the fixture ``make`` of all tests here."""
