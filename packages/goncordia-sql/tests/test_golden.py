from __future__ import annotations

import importlib.util
import sqlite3
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from goncordia_sql import Migrations
from goncordia_sql.sqlite import LEDGER, MIGRATIONS, SqliteDialect


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden", Path(__file__).with_name("golden.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


golden = _load()


@pytest.mark.parametrize("name", golden.GOLDEN)
def test_the_rendered_sql_is_what_was_reviewed(name: str) -> None:
    written = (golden.FOLDER / name).read_text(encoding="utf-8")
    assert golden.GOLDEN[name]() == written, (
        "the SQL has changed: run `python packages/goncordia-sql/tests/golden.py`, and review"
    )


def test_no_other_files_lie_there() -> None:
    assert {path.name for path in golden.FOLDER.iterdir()} == set(golden.GOLDEN)


def test_the_printed_schema_is_the_migrated_one(bare: object) -> None:
    dialect = SqliteDialect(lambda: 0)
    migrations = Migrations(dialect, MIGRATIONS, LEDGER)
    with closing(sqlite3.connect(":memory:")) as printed:
        printed.executescript(migrations.script())
        query = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
        normal = [(*row[:3], row[3] and " ".join(row[3].split())) for row in printed.execute(query)]
        ours = bare.connection.execute(query)  # type: ignore[attr-defined]  # the fixture's class
        migrated = [(*row[:3], row[3] and " ".join(row[3].split())) for row in ours]
        assert normal == migrated
        assert printed.execute("SELECT version FROM goncordia_migration").fetchall() == [(1,)]
        (applied_at, now) = printed.execute(
            "SELECT applied_at, strftime('%s', 'now') * 1000000 FROM goncordia_migration"
        ).fetchone()
        assert abs(applied_at - now) < 60_000_000
