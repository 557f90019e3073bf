"""The cases on PostgreSQL in small, on the server of the tests, and what they rest on."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from goncordia_bench.cases import CASES
from goncordia_bench.cli import main
from goncordia_bench.harness import server as servers
from goncordia_bench.harness.consumer import Told, latencies, pauses
from goncordia_bench.harness.interpreter import NoInterpreterError, interpreter
from goncordia_bench.harness.model import Case, Subject
from goncordia_bench.harness.postgres import (
    Postgres,
    asked,
    dropped,
    fresh,
    version,
)
from goncordia_bench.harness.sample import take
from goncordia_bench.harness.server import ServerError, own_server
from goncordia_bench.probes.statements import StatementCounter
from goncordia_bench.systems import FLOOR, OURS, PEERS
from goncordia_conformance.servers.process import NotHereError

FULL = os.environ.get("GONCORDIA_FULL") == "1"
DATABASES = "SELECT count(*) FROM pg_database WHERE starts_with(datname, $1)"


@pytest.fixture
async def server(pg_dsn: str) -> Postgres:
    return Postgres(pg_dsn, f"bench_test_{uuid4().hex[:8]}")


def is_quick(case: Case, subject: Subject) -> bool:
    """Whether it always runs: the peers do so once each."""
    is_peer = any(subject.name.startswith(peer) for peer in PEERS)
    runs_here = sys.version_info >= subject.python
    return runs_here and (FULL or not is_peer or case.name == "postgres-drain")


# The latency case waits for seconds; it runs in the bench only.
QUICK = [
    (case, subject.name)
    for case in CASES
    if case.needs_postgres and case.name != "postgres-latency"
    for subject in case.subjects
    if is_quick(case, subject)
]


@pytest.mark.parametrize(("case", "subject"), QUICK, ids=lambda each: getattr(each, "name", each))
async def test_every_subject_gives_the_figures_that_are_measured(
    case: Case, subject: str, tmp_path: Path, server: Postgres
) -> None:
    found = take(case, subject, number=3, quick=True, scratch=tmp_path, server=server)
    assert (found.case, found.subject, found.round) == (case.name, subject, 3)
    keys = [measure.of for measure in case.measures]
    keys += [measure.against for measure in case.measures if measure.against is not None]
    for key in keys:
        if key.subject == subject:
            # In a steady load so short a peer may not have begun.
            assert found.figures[key.figure] > 0 or subject not in {OURS, FLOOR}
    await dropped(server)
    assert await asked(server.dsn, DATABASES, server.prefix) == 0


def test_every_system_is_in_every_comparison() -> None:
    for case in CASES:
        names = {subject.name for subject in case.subjects}
        if case.needs_postgres and FLOOR in names:
            assert {OURS, *PEERS} <= names, case.name


# ---------------------------------------------------------------- databases


async def test_a_database_is_there_as_long_as_it_is_needed(server: Postgres) -> None:
    async with fresh(server) as dsn:
        assert await asked(dsn, "SELECT current_database()") != await asked(
            server.dsn, "SELECT current_database()"
        )
        assert await asked(server.dsn, DATABASES, server.prefix) == 1
        left_open = await asyncpg.connect(dsn)
    assert await asked(server.dsn, DATABASES, server.prefix) == 0
    left_open.terminate()


async def test_a_shared_database_stays_until_the_run_is_over(server: Postgres) -> None:
    other = Postgres(server.dsn, server.prefix.replace("_", "-"))
    try:
        async with fresh(server, "one"), fresh(other, "one"):
            pass
        assert await asked(server.dsn, DATABASES, f"{server.prefix}_one") == 1
        await dropped(server)
        assert await asked(server.dsn, DATABASES, server.prefix) == 0
        assert await asked(server.dsn, DATABASES, other.prefix) == 1  # `_` is no wildcard
    finally:
        await dropped(other)


def test_the_address_of_a_database_keeps_what_else_was_given() -> None:
    server = Postgres("postgresql://me:secret@host:5433/mine?sslmode=require", "bench")
    assert server.database("x") == "postgresql://me:secret@host:5433/x?sslmode=require"


async def test_a_server_tells_what_is_not_as_it_comes(server: Postgres) -> None:
    told = await version(server.dsn)
    assert told.split(", ")[0] == str(await asked(server.dsn, "SHOW server_version")).split()[0]
    assert ("fsync=off" in told) == (await asked(server.dsn, "SHOW fsync") == "off")


async def test_statements_are_counted(server: Postgres) -> None:
    async with fresh(server) as dsn:
        own = await asyncpg.connect(dsn)
        statements = await StatementCounter.of(own)
        other = await asyncpg.connect(dsn)
        before = await statements.count()
        for n in range(5):
            await other.fetchval("SELECT $1::int", n)
        async with other.transaction():
            await other.execute("CREATE TABLE t (x int)")
        counted = await statements.count() - before
        read = await statements.pages()
        await other.execute("INSERT INTO t SELECT generate_series(1, 1000)")
        assert await statements.pages() > read
        await other.close()
        await own.close()
    assert 5 + 3 <= counted <= 5 + 3 + 1  # where all are counted, the counting itself


# ---------------------------------------------------------------- a server of our own


@pytest.fixture
def crossable() -> Iterator[Path]:
    """A folder that the server's user can reach, as pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="goncordia-bench-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_the_command_starts_a_server_that_is_safe_and_ends(
    crossable: Path, pg_dsn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    del pg_dsn  # where there is none, this is skipped
    try:
        with own_server(crossable):
            pass
    except ServerError:
        pytest.skip("the server of the tests is elsewhere: there are no binaries here")
    words = ["--quick", "--only", "postgres-memory", "--folder", str(crossable)]
    assert main(words) == 0, capsys.readouterr().out
    told = json.loads((crossable / "latest.json").read_text())["machine"]["postgres"]
    assert told
    assert "fsync" not in told
    names = sorted(path.name for path in crossable.iterdir())
    assert names == ["latest-postgresql.svg", "latest.json", "latest.md"]


def test_without_a_server_the_command_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> None:
        raise NotHereError("there are no binaries")

    monkeypatch.setattr(servers, "find_postgres", missing)
    assert main(["--quick", "--only", "postgres-memory", "--folder", str(tmp_path)]) == 1
    assert "name a server by --dsn" in capsys.readouterr().out.replace("\n", " ")


# ---------------------------------------------------------------- the rest


def test_this_python_is_taken_where_it_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert interpreter((3, 11)) == Path(sys.executable)
    with pytest.raises(NoInterpreterError, match=r"needs Python 3\.99"):
        interpreter((3, 99))
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(NoInterpreterError, match=r"needs Python 3\.98, and uv"):
        interpreter((3, 98))


def test_latencies_are_from_the_call_to_the_start() -> None:
    sent = [1_000_000 * n for n in range(100)]
    told = Told({n: at + 2_000_000 + (n == 7) * 90_000_000 for n, at in enumerate(sent)}, 0.25)
    found = latencies(sent, [at + 500_000 for at in sent], told)
    assert found == {"p50 ms": 2.0, "p99 ms": 2.0, "commit p99 ms": 0.5, "idle %": 25.0}
    with pytest.raises(AssertionError, match="100 were sent, 99 started"):
        latencies(sent, sent, Told(dict.fromkeys(range(99), 0), 0.0))


def test_everybody_has_the_same_pauses() -> None:
    assert list(pauses(20)) == list(pauses(20))
    assert all(0.03 <= pause <= 0.12 for pause in pauses(100))
