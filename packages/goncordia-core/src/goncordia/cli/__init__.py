"""The command ``goncordia``. It needs the extra ``cli``: ``pip install 'goncordia-core[cli]'``."""

from __future__ import annotations

import signal
import sys
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
    app(prog_name="goncordia")
