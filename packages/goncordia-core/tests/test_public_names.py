"""Every public module says what it offers, all of it, and nothing that is not there."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import goncordia

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(goncordia.__path__, "goncordia.")
    if not any(part.startswith("_") for part in module.name.split("."))
)


def defined_names(source: str) -> Iterator[str]:
    """The public names that a module's own top level defines."""
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar" | "ParamSpec"))):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case _:
                pass


@pytest.mark.parametrize("name", ["goncordia", *MODULES])
def test_all_is_importable_and_complete(name: str) -> None:
    module = importlib.import_module(name)
    offered: list[str] = getattr(module, "__all__", [])
    assert len(set(offered)) == len(offered)
    missing = [each for each in offered if not hasattr(module, each)]
    assert missing == []
    assert module.__file__ is not None
    source = Path(module.__file__).read_text(encoding="utf-8")
    unsaid = {each for each in defined_names(source) if not each.startswith("_")} - set(offered)
    assert unsaid == set()


@pytest.mark.parametrize("name", ["goncordia", *MODULES])
def test_every_public_module_has_a_docstring(name: str) -> None:
    assert importlib.import_module(name).__doc__


def test_the_memory_driver_is_found_by_its_scheme() -> None:
    (point,) = entry_points(group="goncordia.drivers", name="memory")
    assert point.load() is importlib.import_module("goncordia.memory").MemoryDriver
