"""What the figures were taken on."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, Final

__all__ = ["Machine", "describe", "fsync_seconds", "load"]

_FSYNCS: Final = 200
_DISTRIBUTIONS: Final = (
    "goncordia-core",
    "goncordia-driver-sqlite",
    "goncordia-driver-pg",
    "goncordia-driver-redis",
    "huey",
    "msgspec",
    "uvloop",
    "asyncpg",
    "awa-pg",
    "oban",
    "pgqueuer",
    "procrastinate",
    "psycopg",
    "redis",
    "hiredis",
)


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts that a reader of the figures needs.

    Attributes:
        taken_at: when the run began.
        cpu: the processor's name.
        cores: how many this process may use.
        system: the operating system.
        python: its version.
        sqlite: its version.
        versions: of the distributions that were run.
        file_system: of the folder with the databases.
        fsync_us: the median of one write and fsync of 4 KiB there, in microseconds.
        load_before: the load in the minute before the run.
        real_time: the run goes before all other work of the machine.
        postgres: the server's version and what was set on it; empty: there was none.
        redis: the other server's name and version; empty: there was none.
    """

    taken_at: str
    cpu: str
    cores: int
    system: str
    python: str
    sqlite: str
    versions: dict[str, str]
    file_system: str
    fsync_us: float
    load_before: float
    real_time: bool
    postgres: str = ""
    redis: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def describe(
    folder: Path,
    postgres: str = "",
    redis: str = "",
    peers: Mapping[str, str] = MappingProxyType({}),
) -> Machine:
    """Describe this machine and the disk under ``folder``.

    Args:
        folder: where the databases are.
        postgres: the version of that server.
        redis: the name and version of that one.
        peers: versions of what runs in other environments.
    """
    return Machine(
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        versions={name: found for name in _DISTRIBUTIONS if (found := _version(name))} | {**peers},
        file_system=_file_system(folder),
        fsync_us=fsync_seconds(folder) * 1e6,
        load_before=load(),
        real_time=_is_real_time(),
        postgres=postgres,
        redis=redis,
    )


def load() -> float:
    """How many processes ran or waited for the processor in the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def fsync_seconds(folder: Path) -> float:
    """The median of writing 4 KiB at the end of a file and pressing them to the disk."""
    path = folder / "fsync"
    taken: list[float] = []
    block = bytes(4096)
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        for _ in range(_FSYNCS):
            started = time.perf_counter()
            os.write(file, block)
            os.fsync(file)
            taken.append(time.perf_counter() - started)
    finally:
        os.close(file)
        path.unlink()
    return median(taken)


def _is_real_time() -> bool:
    if sys.platform != "linux":
        return False
    return os.sched_getscheduler(0) in {os.SCHED_FIFO, os.SCHED_RR}


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _file_system(folder: Path) -> str:
    """Its type, by the longest mount point above the folder."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    place = folder.resolve()
    found = ("", "unknown")
    for line in mounts.read_text().splitlines():
        _, point, kind, *_ = line.split()
        if place.is_relative_to(point) and len(point) >= len(found[0]):
            found = (point, kind)
    return found[1]
