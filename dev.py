#!/usr/bin/env python3
"""The developer's one door: set the workspace up and run something in it.

    python3 dev.py demo                    the main job, on SQLite
    python3 dev.py test [pytest's words]   all tests; missing backends are skipped and named
    python3 dev.py check                   format, lint, types, architecture
    python3 dev.py docs                    build the documentation's site into build/site
    python3 dev.py wheels                  build all packages, install each alone, run it
    python3 dev.py bench [its words]       our numbers and the peers'
    python3 dev.py coverage                the tests again, and which lines they do not reach
    python3 dev.py setup                   only make the environment

It needs Python 3.11 and nothing else. What is missing (uv, the dependencies) is installed into this
folder: `.dev/` and `.venv/`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
TOOLS = ROOT / ".dev" / "tools"
UV_VERSION = "0.13.9"
WINDOWS = os.name == "nt"
BIN = "Scripts" if WINDOWS else "bin"
MEMBERS = [*sorted(ROOT.glob("packages/*")), ROOT / "tests-conformance", ROOT / "bench"]


class DevError(Exception):
    """Something that the reader of the message can put right."""


def say(text: str) -> None:
    """Print a line of progress, before the output of what it announces."""
    print(f"==> {text}", flush=True)


def run(*command: str | Path, env: dict[str, str] | None = None) -> int:
    """Run a command in the root of the workspace and return its exit code."""
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=ROOT, env=env, check=False).returncode


def works(*command: str | Path) -> bool:
    """Tell whether a command can be run, and silently succeeds."""
    words = [str(word) for word in command]
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


# --- the environment ----------------------------------------------------------------------------


def uv() -> Path:
    """Return uv: the one on PATH, else one of our own, installed on the first call."""
    found = shutil.which("uv")
    if found and works(found, "--version"):
        return Path(found)
    own = TOOLS / BIN / ("uv.exe" if WINDOWS else "uv")
    if not works(own, "--version"):
        say(f"uv is not on PATH: installing it into {TOOLS.relative_to(ROOT)}")
        shutil.rmtree(TOOLS, ignore_errors=True)
        package = f"uv=={UV_VERSION}"
        # Some systems ship Python without ensurepip: there pip itself can install into a folder.
        if works(sys.executable, "-m", "venv", TOOLS):
            run(TOOLS / BIN / "python", "-m", "pip", "install", "--quiet", package)
        else:
            run(sys.executable, "-m", "pip", "install", "--quiet", "--target", TOOLS, package)
    if not works(own, "--version"):
        raise DevError("could not install uv: install it by hand (pip install uv), then try again")
    return own


def environment() -> Path:
    """Return the folder of the project's virtual environment."""
    return ROOT / os.environ.get("UV_PROJECT_ENVIRONMENT", ".venv")


def setup() -> Path:
    """Bring the environment to what `uv.lock` says and return its Python."""
    say(f"installing the workspace into {os.path.relpath(environment(), ROOT)}")
    # Packages come from the package index and Python from this machine, never from elsewhere.
    # The certificates that pip trusts are the system's, or named for it; uv asks to be told.
    env = {"UV_SYSTEM_CERTS": "1"} | os.environ | {"UV_PYTHON_DOWNLOADS": "never"}
    env.pop("VIRTUAL_ENV", None)
    what = ("--locked", "--all-packages", "--all-extras", "--all-groups")
    if run(uv(), "sync", "--quiet", "--python", sys.executable, *what, env=env):
        raise DevError("uv sync failed: see above (if a pyproject.toml was changed: run `uv lock`)")
    return environment() / BIN / "python"


# --- the commands -------------------------------------------------------------------------------


def demo(words: list[str]) -> int:
    """Run the main job on SQLite."""
    return run(setup(), "docs/examples/demo.py", *words)


def test(words: list[str]) -> int:
    """Run the tests, in as many processes as there are cores (at most 4)."""
    chosen = any(word.startswith(("-n", "--numprocesses", "--pdb", "-pno:xdist")) for word in words)
    workers = [] if chosen else ["-n", str(min(os.cpu_count() or 1, 4))]
    return run(setup(), "-m", "pytest", *workers, *words)


def check(_words: list[str]) -> int:
    """Run every check, then say which failed."""
    python = setup()
    # Tests go to mypy package by package: their modules have no package, so names may repeat.
    shipped = [ROOT / "conftest.py", ROOT / "dev.py", *sorted(ROOT.glob(".ci/*.py"))]
    shipped += [member / "src" for member in MEMBERS]
    tests = [folder for m in MEMBERS if any((folder := m / "tests").rglob("*.py"))]
    tests += [ROOT / "docs" / folder for folder in ("examples", "site", "tests")]
    tests += [ROOT / "docker/app"]
    bin_ = environment() / BIN
    mypy: list[tuple[str, list[str | Path]]] = [
        (f"mypy: {folder.relative_to(ROOT)}", [bin_ / "mypy", folder]) for folder in tests
    ]
    checks: list[tuple[str, list[str | Path]]] = [
        ("format", [bin_ / "ruff", "format", "--check", "."]),
        ("lint", [bin_ / "ruff", "check", "."]),
        ("mypy: what is shipped", [bin_ / "mypy", *shipped]),
        *mypy,
        ("pyright", [bin_ / "pyright", "--pythonpath", python]),
        ("architecture", [bin_ / "lint-imports"]),
    ]
    failed: list[str] = []
    for name, command in checks:
        say(name)
        if run(*command):
            failed.append(name)
    say(f"failed: {', '.join(failed)}" if failed else f"all {len(checks)} checks passed")
    return 1 if failed else 0


def docs(words: list[str]) -> int:
    """Build the documentation's site; a warning is an error."""
    setup()
    # What the variable silences is news of the theme's maker, no warning about a page. Never pass
    # --quiet here: mkdocs then counts no warnings, so that none fails it.
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    mkdocs = environment() / BIN / "mkdocs"
    return run(mkdocs, "build", "--config-file", "docs/site/mkdocs.yml", *words, env=env)


def wheels(words: list[str]) -> int:
    """Build every package, install each from its wheel alone, and run it."""
    return run(sys.executable, ".ci/wheels.py", uv(), *words)


def bench(words: list[str]) -> int:
    """Run the benchmarks."""
    return run(setup(), "-m", "goncordia_bench", *words)


def coverage(words: list[str]) -> int:
    """Run the tests under coverage, their child processes included, and report."""
    tool = (setup(), "-m", "coverage")
    run(*tool, "erase")
    code = run(*tool, "run", "-m", "pytest", "-q", *words)
    run(*tool, "combine", "--quiet")
    return run(*tool, "report") or code


def only_setup(_words: list[str]) -> int:
    """Make the environment."""
    setup()
    return 0


COMMANDS = {
    "demo": demo,
    "test": test,
    "check": check,
    "docs": docs,
    "wheels": wheels,
    "bench": bench,
    "coverage": coverage,
    "setup": only_setup,
}


def main(arguments: list[str]) -> int:
    """Run the named command and return its exit code."""
    if sys.version_info < (3, 11):  # noqa: UP036 - an older one can start this file: tell it
        version = sys.version.split()[0]
        print(f"dev.py: needs Python 3.11 or newer; this is {version}", file=sys.stderr)
        return 2
    name, *words = arguments or ["--help"]
    if name in ("-h", "--help", "help"):
        print(__doc__)
        return 0
    if name not in COMMANDS:
        print(f"dev.py: unknown command {name!r}; known: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    started = time.monotonic()
    try:
        code = COMMANDS[name](words)
    except DevError as error:
        print(f"dev.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    verdict = "done" if code == 0 else f"FAILED (exit code {code})"
    seconds = time.monotonic() - started
    print(f"==> {name}: {verdict} after {seconds:.0f} s", file=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
