"""The conformance kit: the tests that every driver must pass.

Subclass :class:`DriverConformance` with the fixture ``make_driver``; the README shows it whole.
"""

import pytest

# Before the first import of a module with tests, so that their asserts say what was compared.
pytest.register_assert_rewrite("goncordia_conformance.rules", "goncordia_conformance.lab")

from goncordia_conformance.base import Conformance  # noqa: E402 - after the line above
from goncordia_conformance.lab import Lab, MakeDriver, Session  # noqa: E402 - as above
from goncordia_conformance.suite import DriverConformance  # noqa: E402 - as above

__all__ = ["Conformance", "DriverConformance", "Lab", "MakeDriver", "Session"]
