"""Exit codes, and errors as one line instead of a traceback."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import typer

from goncordia.errors import (
    ConfigurationError,
    GoncordiaError,
    InvalidCursorError,
    MigrationRequiredError,
    UnsupportedError,
)

__all__ = ["FAILED", "USAGE", "reported"]

FAILED: Final = 1
"""The exit code of an operation that failed."""

USAGE: Final = 2
"""The exit code of a wrong option, path, URL or setting."""


@contextmanager
def reported() -> Generator[None]:
    """Print an expected error on stderr, and exit with its code.

    Raises:
        typer.Exit: in place of an error of Goncordia's.
    """
    try:
        yield
    except (ConfigurationError, InvalidCursorError, UnsupportedError) as error:
        _end(str(error), USAGE, error)
    except MigrationRequiredError as error:
        told = str(error)
        hint = "" if "goncordia migrate" in told else " (run: goncordia migrate)"
        _end(told + hint, FAILED, error)
    except GoncordiaError as error:
        _end(str(error), FAILED, error)


def _end(message: str, code: int, error: Exception) -> None:
    typer.echo(f"goncordia: {message}", err=True)
    for note in getattr(error, "__notes__", ()):
        typer.echo(f"  {note}", err=True)
    raise typer.Exit(code) from error
