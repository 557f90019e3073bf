"""Every module says what it offers, and the entry points load."""

from __future__ import annotations

import importlib
import pkgutil
from importlib.metadata import entry_points

import pytest

import goncordia_driver_redis
from goncordia_driver_redis import RedisDriver

FOUND = list(pkgutil.walk_packages(goncordia_driver_redis.__path__, "goncordia_driver_redis."))
MODULES = sorted(module.name for module in FOUND)
PACKAGES = [module.name for module in FOUND if module.ispkg]
"""They need not offer anything of their own."""


@pytest.mark.parametrize("name", ["goncordia_driver_redis", *MODULES])
def test_all_names_are_there(name: str) -> None:
    module = importlib.import_module(name)
    offered: list[str] = getattr(module, "__all__", []) if name in PACKAGES else module.__all__
    assert len(set(offered)) == len(offered)
    assert [each for each in offered if not hasattr(module, each)] == []
    assert module.__doc__


def test_the_entry_points_load() -> None:
    points = entry_points(group="goncordia.drivers")
    mine = [each.name for each in points if each.load() is RedisDriver]
    assert sorted(mine) == [
        "redis",
        "redis+cluster",
        "redis+sentinel",
        "redis+unix",
        "rediss",
        "rediss+cluster",
        "rediss+sentinel",
        "valkey",
        "valkeys",
    ]
