"""Every module says what it offers, and psycopg need not be there."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import goncordia_driver_pg

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(goncordia_driver_pg.__path__, "goncordia_driver_pg.")
)


@pytest.mark.parametrize("name", ["goncordia_driver_pg", *MODULES])
def test_all_names_are_there(name: str) -> None:
    module = importlib.import_module(name)
    offered: list[str] = module.__all__
    assert len(set(offered)) == len(offered)
    assert [each for each in offered if not hasattr(module, each)] == []
    assert module.__doc__


def test_the_entry_points_load() -> None:
    points = {
        point.name: point.load().__name__ for point in entry_points(group="goncordia.drivers")
    }
    assert points["postgresql"] == points["postgres"] == "AsyncpgDriver"
    assert points["postgresql+psycopg"] == "PsycopgDriver"


def test_without_psycopg_asyncpg_works_and_the_other_says_what_to_install() -> None:
    code = """
import sys
sys.modules["psycopg"] = None
import goncordia
from goncordia_driver_pg import AsyncpgDriver
AsyncpgDriver("postgresql://h/d")
try:
    goncordia.connect("postgresql+psycopg://h/d")
except goncordia.errors.ConfigurationError as error:
    assert "goncordia-driver-pg[psycopg]" in str(error), error
else:
    raise AssertionError
assert "psycopg" not in {name for name, module in sys.modules.items() if module}
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = goncordia_driver_pg.nonsense
