"""The kit over the docs' example of a driver, by the example's own test file."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "goncordia-driver-dict"

if not EXAMPLE.is_dir():
    pytest.skip("the example is not part of this distribution", allow_module_level=True)


def _load(name: str, path: Path) -> ModuleType:
    """Import a file that is not installed here, as it is where the example stands alone."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


DRIVER = EXAMPLE / "src" / "goncordia_driver_dict" / "__init__.py"
example = _load("goncordia_driver_dict", DRIVER)

TestDictDriver = _load(
    "dict_example_tests", EXAMPLE / "tests" / "test_conformance.py"
).TestDictDriver


def test_what_the_docs_quote_is_in_the_example() -> None:
    page = (EXAMPLE.parents[1] / "writing-a-driver.md").read_text()
    note = "<!-- not run: part of the example -->"
    quoted = re.findall(rf"{note}\n\n```python\n(.*?)```", page, re.DOTALL)
    source = DRIVER.read_text()
    assert len(quoted) == 7
    assert [quote for quote in quoted if quote not in source] == []


def test_the_example_has_at_most_250_lines() -> None:
    assert len(DRIVER.read_text().splitlines()) <= 250


def test_the_example_has_exactly_the_ten_methods() -> None:
    from goncordia.driver import BaseExecutor

    own = {name for name in vars(example.DictExecutor) if not name.startswith("_")}
    assert own - {"store"} == BaseExecutor.__abstractmethods__
    assert len(BaseExecutor.__abstractmethods__) == 10
