"""The backend that a command works on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import typer

from goncordia.cli.settings import read_settings
from goncordia.client import Client
from goncordia.driver import AnyDriver, connect
from goncordia.errors import ConfigurationError

__all__ = ["URL_VARIABLE", "Url", "driver_of", "driving", "opened", "run"]

R = TypeVar("R")

URL_VARIABLE: Final = "GONCORDIA_URL"
"""The environment variable that has the backend's URL."""

Url: TypeAlias = Annotated[
    str | None,
    typer.Option(
        envvar=URL_VARIABLE, help="The backend, such as sqlite:///jobs.db.", show_default=False
    ),
]
"""The option that every command has."""


def driver_of(url: str | None) -> AnyDriver:
    """The driver for the URL, else for that of the settings; it is not connected yet.

    Raises:
        ConfigurationError: there is no URL, or no driver for it, or the settings are broken.
    """
    url = url or read_settings().url
    if not url:
        raise ConfigurationError(
            "url: none is given; use --url, set GONCORDIA_URL, or write url into [tool.goncordia] "
            "of pyproject.toml, such as sqlite:///jobs.db"
        )
    return connect(url)


@asynccontextmanager
async def driving(url: str | None) -> AsyncGenerator[AnyDriver]:
    """The driver, not connected yet, which is closed at the end."""
    driver = driver_of(url)
    try:
        yield driver
    finally:
        await driver.aclose()


@asynccontextmanager
async def opened(url: str | None) -> AsyncGenerator[Client[Any]]:
    """A client on the backend, which is closed at the end."""
    async with driving(url) as driver:
        yield Client(driver)


def run(main: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine on an event loop of its own: uvloop's where that is installed."""
    try:
        factory = import_module("uvloop").new_event_loop
    except ModuleNotFoundError:
        factory = None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)
