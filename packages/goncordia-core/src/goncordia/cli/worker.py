"""``goncordia worker``."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Annotated, Any

import typer

from goncordia.cli import completing
from goncordia.cli.backend import Url, driver_of, run
from goncordia.cli.choosing import one_of
from goncordia.cli.loading import load_registry
from goncordia.cli.outcome import reported
from goncordia.cli.settings import read_settings
from goncordia.client import Client
from goncordia.driver import AnyDriver
from goncordia.errors import ConfigurationError
from goncordia.logs import add_job_context
from goncordia.options import DEFAULT_QUEUE
from goncordia.pool import WorkerPool
from goncordia.registry import Registry

__all__ = ["LogLevel", "worker"]

_logger = logging.getLogger("goncordia.cli")


class LogLevel(StrEnum):
    """From which level on records are logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class _Lines(logging.Formatter):
    """Lines that end with the job in which they were written; our own name it in their words."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        line = super().formatMessage(record)
        job = getattr(record, "job", "-")
        return line if job == "-" or record.name.startswith("goncordia.") else f"{line} [{job}]"


def worker(
    registry: Annotated[
        str | None,
        typer.Argument(metavar="MODULE:REGISTRY", help="The registry, such as app:registry."),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            "--queue",
            "-q",
            help="A queue; the first ones given come first.",
            show_default="default",
            autocompletion=completing.queue_names,
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", "-c", help="How many jobs run at once.", show_default="10"),
    ] = None,
    url: Url = None,
    shutdown_timeout: Annotated[
        float | None,
        typer.Option(
            help="Seconds that running jobs have to end when a signal comes.", show_default="30"
        ),
    ] = None,
    log_level: Annotated[LogLevel, one_of(LogLevel, "What is logged, to stderr.")] = LogLevel.INFO,
) -> None:
    """Work jobs until SIGINT or SIGTERM comes, then shut down in order."""
    with reported():
        handler = logging.StreamHandler()
        handler.setFormatter(_Lines("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logging.basicConfig(level=log_level.upper(), handlers=[handler])
        workers = load_registry(registry or _configured())
        if logging.getLogger().handlers:  # the application may have put its own there, or none
            add_job_context()
        queues = list(dict.fromkeys(queue or [DEFAULT_QUEUE]))
        given = {"concurrency": concurrency, "shutdown_timeout": shutdown_timeout}
        settings = {name: value for name, value in given.items() if value is not None}
        driver = driver_of(url)
        run(_work(driver, workers, queues, settings))


def _configured() -> str:
    path = read_settings().registry
    if path is None:
        raise ConfigurationError(
            "registry: none is given; name one, such as app:registry, here or as registry in "
            "[tool.goncordia] of pyproject.toml"
        )
    return path


async def _work(
    driver: AnyDriver, registry: Registry[Any], queues: list[str], settings: dict[str, Any]
) -> None:
    pool = WorkerPool(driver, registry, queues=queues, **settings)
    try:
        await _warn_of_unknown(driver, queues)
        await pool.run()
    finally:
        await driver.aclose()


async def _warn_of_unknown(driver: AnyDriver, queues: list[str]) -> None:
    """Only a warning: a queue begins with its first job, which may come later."""
    known = {state.name for state in await Client(driver).queues()} | {DEFAULT_QUEUE}
    for name in queues:
        if name not in known:
            _logger.warning(
                "queue %r has no jobs yet; there are: %s", name, ", ".join(sorted(known))
            )
