from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from goncordia_bench.probes.commits import CommitCounter
from goncordia_bench.probes.durability import Connections
from goncordia_bench.probes.memory import resident


def opened(path: Path, level: str = "NORMAL") -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {level}")
    connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
    return connection


def test_commits_are_counted_whoever_makes_them(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(opened(path)) as one, closing(opened(path)) as two:
        commits = CommitCounter(path)
        before = commits()
        for _ in range(3):
            one.execute("INSERT INTO t VALUES (1)")
        two.execute("BEGIN IMMEDIATE")
        for _ in range(5):
            two.execute("INSERT INTO t VALUES (1)")
        two.execute("COMMIT")
        assert commits() - before == 4


def test_a_checkpoint_does_not_disturb_the_count(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(opened(path)) as connection:
        commits = CommitCounter(path)
        before = commits()
        for _ in range(10):
            connection.execute("INSERT INTO t VALUES (1)")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert commits() - before == 10


def test_transactions_that_write_nothing_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(opened(path)) as connection:
        commits = CommitCounter(path)
        before = commits()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("SELECT * FROM t").fetchall()
        connection.execute("COMMIT")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("ROLLBACK")
        assert commits() == before


def test_the_counter_takes_no_lock_away(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(opened(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (1)")
        CommitCounter(path)()
        write = (
            "import sqlite3, sys\n"
            "sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
        )
        other = subprocess.run(
            [sys.executable, "-c", write, str(path)], capture_output=True, text=True, check=False
        )
        assert "locked" in other.stderr
        connection.execute("COMMIT")


def test_connections_say_themselves_how_durable_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "connect", sqlite3.connect)  # put it back in the end
    connections = Connections()
    with pytest.raises(AssertionError, match="no open connection"):
        connections.check("FULL")
    with closing(opened(tmp_path / "a.db", "FULL")):
        connections.check("FULL")
        with pytest.raises(AssertionError):
            connections.check("NORMAL")
        with closing(opened(tmp_path / "a.db", "NORMAL")), pytest.raises(AssertionError):
            connections.check("FULL")
        connections.check("FULL")  # what was closed does not count


def test_other_journal_modes_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "connect", sqlite3.connect)
    connections = Connections()
    with closing(sqlite3.connect(tmp_path / "a.db")), pytest.raises(AssertionError):
        connections.check("FULL")


def test_memory_is_that_of_this_process() -> None:
    before = resident()
    ballast = bytearray(b"x") * (64 << 20)
    grown = resident() - before
    assert 32 << 20 < grown < 96 << 20, len(ballast)
