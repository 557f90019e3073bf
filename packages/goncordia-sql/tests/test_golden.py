from __future__ import annotations

import importlib.util
import sqlite3
import types
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from goncordia_sql import Migrations, Operations, ParamStyle
from goncordia_sql.ops.base import Topic
from goncordia_sql.postgres import PostgresDialect, PostgresOperations
from goncordia_sql.sqlite import LEDGER, MIGRATIONS, SqliteDialect
from goncordia_sql.statement import Sql


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


@pytest.mark.parametrize(
    "operations",
    [
        Operations(SqliteDialect(lambda: 0)),
        PostgresOperations(PostgresDialect(ParamStyle.NUMBERED_DOLLAR)),
    ],
    ids=["sqlite", "postgres"],
)
def test_every_statement_is_sent_by_some_operation(operations: Operations) -> None:
    topics = [each for each in vars(operations).values() if isinstance(each, Topic)]
    unsent = [
        f"{type(topic).__name__}.{name}"
        for topic in topics
        for name, value in vars(topic).items()
        if isinstance(value, Sql) and name.startswith("_") and name not in _names_reached(topic)
    ]
    assert unsent == []


def _names_reached(topic: Topic) -> set[str]:
    """The attributes that public methods use, and methods of those names, and so on."""
    cls = type(topic)
    reached: set[str] = set()
    new = {name for name in dir(cls) if not name.startswith("_")}
    while new:
        reached |= new
        new = {used for name in new for used in _names_used(cls, name)} - reached
    return reached


def _names_used(cls: type, method: str) -> set[str]:
    """The attributes that a method uses; with that which it overrides, if it calls that."""
    used: set[str] = set()
    for base in cls.__mro__:
        function = vars(base).get(method)
        if isinstance(function, types.FunctionType):
            names = _names_of(function.__code__)
            used |= names
            if "super" not in names:
                break
    return used


def _names_of(code: types.CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return set(code.co_names).union(*map(_names_of, inner))
