"""The command ``goncordia``. It needs the extra ``cli``: ``pip install 'goncordia-core[cli]'``."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from goncordia.pool.signals import end_at

__all__ = ["main"]

_NEEDED: Final = frozenset({"typer", "rich"})


def main() -> None:
    """Run the command line and end the process: 0 done, 1 failed, 2 wrong usage or settings."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # else somebody wants it ignored
        end_at(signal.SIGTERM)
    try:
        from goncordia.cli.app import app  # noqa: PLC0415 - what it imports may be missing
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _NEEDED:
            raise
        print(
            f"goncordia: the command line needs {missing}: pip install 'goncordia-core[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    sys.exit(_written(lambda: app(prog_name="goncordia")))


def _written(command: Callable[[], object]) -> str | int | None:
    """The exit code of a command whose output is written; if it cannot be, that is told."""
    code: str | int | None = None
    try:
        try:
            command()
        except SystemExit as end:
            code = end.code
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        if _is_writable():
            raise
        if error.errno != errno.EPIPE:  # that one is no trouble: a reader had enough
            with suppress(OSError):
                print(f"goncordia: the output cannot be written: {error.strerror}", file=sys.stderr)
        return code or 1
    return code


def _is_writable() -> bool:
    """Whether stdout is; if not, it leads nowhere from now on."""
    try:
        print(flush=True)
    except OSError:
        # What is still in its buffer would be tried once more at the end of the interpreter.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        return False
    return True
