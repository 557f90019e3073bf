"""One sample, in a process of its own: ``python -m goncordia_bench.harness.sample …``.

Neither the heap nor the threads nor the imports of one subject are there when another runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from goncordia_bench.harness.interpreter import NoInterpreterError, interpreter
from goncordia_bench.harness.model import Case, Figures, Sample, Setting
from goncordia_bench.harness.postgres import Postgres

__all__ = ["SampleError", "take"]

_TIMEOUT: Final = 600.0
_MARK: Final = "figures: "


class SampleError(Exception):
    """A subject failed; the text says how."""


def take(
    case: Case,
    subject: str,
    *,
    number: int,
    quick: bool,
    scratch: Path,
    server: Postgres | None = None,
    redis_url: str = "",
    brief: bool = False,
) -> Sample:
    """Run a subject once.

    Args:
        case: the case.
        subject: the subject's name.
        number: of the round.
        quick: small sizes.
        scratch: where folders for it are made.
        server: of a case that needs PostgreSQL.
        redis_url: of the server, for a case that needs Redis.
        brief: smaller sizes for those who are slow.

    Raises:
        SampleError: it failed, or took ten minutes.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    shared = scratch / "shared"
    shared.mkdir(exist_ok=True)
    try:
        python = interpreter(case.subject(subject).python)
    except NoInterpreterError as error:
        raise SampleError(f"{case.name}, {subject}: {error}") from error
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=scratch, prefix=f"{case.name}-") as folder:
        command = [
            str(python), "-m", __name__, case.name, subject,
            "--folder", folder, "--shared", str(shared), *(["--quick"] if quick else []),
            *(["--dsn", server.dsn, "--prefix", server.prefix] if server else []),
            *(["--redis", redis_url] if redis_url else []), *(["--brief"] if brief else []),
        ]  # fmt: skip
        figures = _figures(command, f"{case.name}, {subject}")
    return Sample(case.name, subject, number, load, time.perf_counter() - started, figures)


def _figures(command: list[str], what: str) -> Figures:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SampleError(f"{what}: not done after {_TIMEOUT:g} s") from error
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode or len(lines) != 1:
        raise SampleError(f"{what}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    figures: dict[str, float] = json.loads(lines[0].removeprefix(_MARK))
    return figures


def _main() -> None:
    from goncordia_bench.cases import case_named  # noqa: PLC0415  # cases import the harness

    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("subject")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--dsn")
    parser.add_argument("--prefix")
    parser.add_argument("--redis", default="")
    parser.add_argument("--brief", action="store_true")
    given = parser.parse_args()
    server = Postgres(given.dsn, given.prefix) if given.dsn else None
    setting = Setting(given.quick, given.folder, given.shared, server, given.redis, given.brief)
    figures = case_named(given.case).subject(given.subject).run(setting)
    print(_MARK + json.dumps(dict(figures)), flush=True)


if __name__ == "__main__":
    _main()
