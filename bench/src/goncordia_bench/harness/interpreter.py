"""A Python for the subjects that do not run on this one."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

__all__ = ["ROOT", "NoInterpreterError", "found_uv", "interpreter"]

ROOT: Final = Path(__file__).resolve().parents[4]
"""Of the workspace."""
_NEWER: Final = 3
"""How many versions are tried."""


class NoInterpreterError(Exception):
    """There is none; the text says what is missing."""


@functools.cache
def interpreter(oldest: tuple[int, int]) -> Path:
    """This Python, or an environment of its own with the same locked packages on a newer one.

    It is made at the first call, in ``.dev/`` of the workspace.

    Raises:
        NoInterpreterError: there is no uv, or no such Python on this machine.
    """
    if sys.version_info >= oldest:
        return Path(sys.executable)
    wanted = f"{oldest[0]}.{oldest[1]}"
    uv = found_uv()
    if uv is None:
        raise NoInterpreterError(f"it needs Python {wanted}, and uv to make an environment for it")
    environment = ROOT / ".dev" / f"venv-bench-{wanted}"
    # As dev.py does: packages from the index, Python from this machine.
    given = {"UV_SYSTEM_CERTS": "1"} | os.environ | {
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_PROJECT_ENVIRONMENT": str(environment),
    }  # fmt: skip
    given.pop("VIRTUAL_ENV", None)
    command = [uv, "sync", "--quiet", "--frozen", "--package", "goncordia-bench"]
    done = subprocess.run(
        [*command, "--python", _found(oldest)],
        cwd=ROOT, env=given, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise NoInterpreterError(f"no environment for Python {wanted}: {done.stderr.strip()}")
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def found_uv() -> str | None:
    """The uv on PATH, else the one that ``dev.py`` installed."""
    return shutil.which("uv") or shutil.which("uv", path=ROOT / ".dev" / "tools" / "bin")


def _found(oldest: tuple[int, int]) -> str:
    """A Python of this machine that starts: on PATH, or pyenv's."""
    major, minor = oldest
    for name in (f"{major}.{newer}" for newer in range(minor, minor + _NEWER)):
        pyenv = sorted(Path.home().glob(f".pyenv/versions/{name}.*/bin/python"))
        for candidate in (shutil.which(f"python{name}"), *map(str, pyenv)):
            if candidate and _starts(candidate):
                return candidate
    raise NoInterpreterError(f"it needs Python {major}.{minor} or newer: none on this machine")


def _starts(candidate: str) -> bool:
    """Whether it is a Python, and not pyenv's stand-in for one that is not chosen."""
    done = subprocess.run([candidate, "-c", ""], capture_output=True, check=False)
    return done.returncode == 0
