"""Servers of tests: PostgreSQL and PgBouncer, shared, guarded, started again, with their rooms."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
import pytest

from goncordia_conformance.backends import docker_runs
from goncordia_conformance.marks import MISSING
from goncordia_conformance.servers.containers import describe_postgres, postgres_container
from goncordia_conformance.servers.guard import guarded, shared
from goncordia_conformance.servers.pgbouncer import run_pgbouncer
from goncordia_conformance.servers.postgres import (
    BENCH,
    Binaries,
    PostgresServer,
    find_postgres,
)
from goncordia_conformance.servers.process import RANGES, NotHereError, free_port, unprivileged_user
from goncordia_conformance.servers.schemas import Roles

pytest_plugins = ["pytester"]

PATIENCE = 30.0


def ask(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether it comes true; without a sleep's guess, since it looks again and again."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


# ---------------------------------------------------------------- the guard


@contextmanager
def file_server(path: Path) -> Generator[str, None, None]:
    """In the place of a server: a file that is there while it runs."""
    path.write_text(str(os.getpid()))
    try:
        yield f"file://{path}"
    finally:
        path.unlink()


@contextmanager
def no_server() -> Generator[str, None, None]:
    if not Path("/no/such/server").exists():
        raise NotHereError("there is no 'server' on this machine")
    yield ""


@contextmanager
def broken_server() -> Generator[str, None, None]:
    if not Path("/no/such/server").exists():
        raise RuntimeError("ended with 3; its last words")
    yield ""


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a guard import this module, which is no part of a package."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setitem(sys.modules, "test_servers", sys.modules[__name__])
    for function in (file_server, no_server, broken_server):
        monkeypatch.setattr(function, "__module__", "test_servers")


@pytest.mark.usefixtures("importable")
def test_a_guarded_server_is_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "server"
    with guarded(partial(file_server, path)) as dsn:
        assert dsn == f"file://{path}"
        assert int(path.read_text()) != os.getpid()
    assert not path.exists()


@pytest.mark.usefixtures("importable")
def test_what_a_server_lacks_is_told() -> None:
    with pytest.raises(NotHereError, match="no 'server'"), guarded(no_server):
        pass
    with pytest.raises(RuntimeError, match="its last words"), guarded(broken_server):
        pass


@pytest.mark.usefixtures("importable")
def test_a_server_is_shared_until_the_last_one_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", os.urandom(4).hex())
    path = tmp_path / "server"
    start = partial(file_server, path)
    with shared(start, "one") as second:
        first = shared(start, "one")
        assert first.__enter__() == second
        keeper = path.read_text()
        other = tmp_path / "other"
        with shared(partial(file_server, other), "two"):
            assert other.read_text() != keeper
        first.__exit__(None, None, None)
        assert path.read_text() == keeper
    assert eventually(lambda: not path.exists())
    with shared(start, "one"):
        assert path.read_text() != keeper
    assert eventually(lambda: not path.exists())


@pytest.mark.usefixtures("importable")
def test_a_killed_process_leaves_no_server(tmp_path: Path) -> None:
    path = tmp_path / "server"
    code = (
        f"import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]\n"
        "import test_servers, pathlib, functools\n"
        "from goncordia_conformance.servers.guard import guarded\n"
        f"start = functools.partial(test_servers.file_server, pathlib.Path({str(path)!r}))\n"
        "with guarded(start): print('up', flush=True); input()\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert path.exists()
        process.send_signal(signal.SIGKILL)
    assert eventually(lambda: not path.exists())


def test_the_workers_of_a_run_share_a_server(pytester: pytest.Pytester, pg_dsn: str) -> None:
    pytester.makepyfile(
        """
        import os, pathlib, pytest, time
        from goncordia_conformance.servers.postgres import PG
        from goncordia_conformance.backends import find_backend

        @pytest.fixture(scope="session")
        def dsn(request):
            with find_backend(PG, request.config, {}) as dsn:
                worker = os.environ["PYTEST_XDIST_WORKER"]
                pathlib.Path(f"{worker}.new").write_text(dsn)
                pathlib.Path(f"{worker}.new").rename(f"{worker}.note")
                # Else the first may be done, and its server gone, before the second begins.
                until = time.monotonic() + 60
                while len(list(pathlib.Path().glob("*.note"))) < 2:
                    assert time.monotonic() < until
                    time.sleep(0.01)
                yield dsn

        @pytest.mark.parametrize("number", range(4))
        def test_it(dsn, number):
            assert dsn
        """
    )
    result = pytester.runpytest_subprocess("-n2", "-p", "no:randomly", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=4)
    one, other = (note.read_text() for note in pytester.path.glob("*.note"))
    assert one == other != pg_dsn
    with pytest.raises(psycopg.OperationalError):
        ask(one, "SELECT 1")


# ---------------------------------------------------------------- ports


def test_no_port_is_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    ports: list[int] = []
    for worker in ("gw0", "gw1", "gw2"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        for _ in range(100):
            random.seed(1)  # as tests may do
            ports.append(free_port())
    assert len(set(ports)) == 300


def test_the_workers_of_a_run_have_ports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[set[int]] = []
    for worker in ("gw0", "gw1"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        parts.append({free_port() % RANGES for _ in range(30)})
    assert parts == [{0}, {1}]


# ---------------------------------------------------------------- PostgreSQL


def test_postgres_answers(pg_dsn: str) -> None:
    assert ask(pg_dsn, "SELECT 1") == 1


def test_postgres_18_is_18(pg18_dsn: str) -> None:
    assert str(ask(pg18_dsn, "SHOW server_version")).startswith("18")


@pytest.fixture
def binaries() -> Path:
    """Where the programs are; without them there is nothing to test here."""
    try:
        return find_postgres().folder
    except NotHereError as error:
        pytest.skip(str(error))


def test_a_server_is_crashed_and_started_again(binaries: Path) -> None:
    server = PostgresServer.create(find_postgres())
    with guarded(server.run) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
            server.stop("immediate")
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError):
            ask(dsn, "SELECT 1")
        server.start()
        assert ask(dsn, "SELECT answer FROM kept") == 42
    assert not server.home.exists()
    with pytest.raises(psycopg.OperationalError):
        ask(dsn, "SELECT 1")


def test_a_server_for_measuring_is_safe(binaries: Path) -> None:
    server = PostgresServer.create(find_postgres(), BENCH)
    with guarded(server.run) as dsn:
        assert ask(dsn, "SHOW fsync") == "on"
        assert ask(dsn, "SHOW max_connections") == "100"


def test_a_server_that_does_not_start_is_told_with_its_words(binaries: Path) -> None:
    server = PostgresServer.create(find_postgres(), {"work_mem": "a lot"})
    with pytest.raises(RuntimeError, match="work_mem"), guarded(server.run):
        pass
    assert not server.home.exists()


def test_programs_that_the_user_may_not_reach_are_copied(
    tmp_path: Path,
) -> None:
    user = unprivileged_user("postgres")
    if user is None:
        pytest.skip("we are not root: the server runs as ourselves")
    hidden = tmp_path / "hidden" / "bin"
    hidden.mkdir(parents=True)
    tmp_path.chmod(0o700)
    program = hidden / "postgres"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    server = PostgresServer(Binaries(hidden, 15), tmp_path / "home", free_port(), {}, user)
    assert server.programs() == tmp_path / "home" / "programs" / "bin"
    assert (server.programs() / "postgres").exists()


def test_a_version_that_is_not_here() -> None:
    with pytest.raises(NotHereError, match="PostgreSQL 7 on this machine"):
        find_postgres(7)


def test_the_container_is_described_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    # All that making one asks of Docker: which version it speaks.
    monkeypatch.setattr("docker.api.client.APIClient._retrieve_server_version", lambda _: "1.44")
    container = describe_postgres(16, {"fsync": "off"})
    assert container.image == "postgres:16"
    assert container._command == ["postgres", "-c", "fsync=off"]
    assert container.driver == ""


def test_a_container_starts() -> None:
    if not docker_runs():
        pytest.skip(f"{MISSING}: a container of PostgreSQL: Docker does not run here")
    with guarded(partial(postgres_container, 18, {"fsync": "off"})) as dsn:
        assert ask(dsn, "SHOW fsync") == "off"


# ---------------------------------------------------------------- PgBouncer


def test_pgbouncer_is_before_our_database(pg_dsn: str, pgbouncer_dsn: str) -> None:
    assert pgbouncer_dsn != pg_dsn
    ours = "SELECT current_database()"
    assert ask(pgbouncer_dsn, ours) == ask(pg_dsn, ours)


def test_pgbouncer_is_in_transaction_mode(pgbouncer_dsn: str) -> None:
    admin = pgbouncer_dsn.rpartition("/")[0] + "/pgbouncer"
    with psycopg.connect(admin, autocommit=True) as connection:
        rows = connection.execute("SHOW CONFIG").fetchall()
    assert {str(row[0]): row[1] for row in rows}["pool_mode"] == "transaction"


def test_pgbouncer_needs_no_server_to_start() -> None:
    upstream = f"postgresql://postgres@127.0.0.1:{free_port()}/postgres"
    try:
        with run_pgbouncer(upstream) as dsn, pytest.raises(psycopg.OperationalError):
            ask(f"{dsn}?connect_timeout=1", "SELECT 1")
    except NotHereError as error:
        pytest.skip(str(error))


# ---------------------------------------------------------------- schemas and roles


def test_a_schema_is_dropped(pytester: pytest.Pytester, pg_dsn: str, pg_schema: str) -> None:
    from goncordia_conformance.servers.schemas import own_schema

    count = "SELECT count(*) FROM pg_namespace WHERE nspname = '{}'"
    with own_schema(pg_dsn) as name, psycopg.connect(pg_dsn) as connection:
        assert name != pg_schema
        connection.execute(f'CREATE SCHEMA "{name}" CREATE TABLE t ()'.encode())
        connection.commit()
        assert ask(pg_dsn, count.format(name)) == 1
    assert ask(pg_dsn, count.format(name)) == 0


def test_roles_have_what_they_are_granted(pg_dsn: str, pg_roles: Roles) -> None:
    pg_roles.grant(
        """
        CREATE TABLE {schema}.job AS SELECT 7 AS id;
        GRANT USAGE ON SCHEMA {schema} TO {worker}, {enqueuer};
        GRANT SELECT ON {schema}.job TO {worker};
        """
    )
    query = f'SELECT id FROM "{pg_roles.schema}".job'
    assert ask(pg_roles.migrator, query) == 7
    assert ask(pg_roles.worker, query) == 7
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask(pg_roles.enqueuer, query)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask(pg_roles.worker, f'CREATE TABLE "{pg_roles.schema}".mine ()')


def test_roles_are_dropped(pg_dsn: str) -> None:
    from goncordia_conformance.servers.schemas import three_roles

    roles = "SELECT count(*) FROM pg_roles WHERE rolcanlogin"
    before = ask(pg_dsn, roles)
    with three_roles(pg_dsn) as made:
        made.grant("CREATE TABLE {schema}.t (); GRANT ALL ON {schema}.t TO {worker}")
        assert ask(pg_dsn, roles) == int(str(before)) + 3
    assert ask(pg_dsn, roles) == before
