from __future__ import annotations

from typing import Any

import pytest

from goncordia.errors import MigrationRequiredError
from goncordia_sql import Migration, Migrations
from goncordia_sql.sqlite import LEDGER

FIRST = Migration(1, "first", ("CREATE TABLE one (a)",), 1)
SECOND = Migration(2, "second", ("CREATE TABLE two (a)", "CREATE INDEX i ON two (a)"), 1)
THIRD = Migration(3, "third", ("DROP TABLE one",), 3)


@pytest.fixture
def empty(make_bare: Any) -> Any:
    bare = make_bare()
    bare.connection.execute("DROP TABLE goncordia_migration")
    yield bare
    bare.close()


def known(bare: Any, *steps: Migration) -> Migrations:
    return Migrations(bare.dialect, steps, LEDGER)


def test_what_is_missing_is_applied_once(empty: Any) -> None:
    assert empty.run(known(empty, FIRST).migrate()) == ["1: first"]
    assert empty.run(known(empty, FIRST, SECOND).migrate()) == ["2: second"]
    assert empty.run(known(empty, FIRST, SECOND).migrate()) == []
    assert empty.value("SELECT count(*) FROM two") == 0


def test_an_older_schema_must_be_migrated(empty: Any) -> None:
    empty.run(known(empty, FIRST).migrate())
    with pytest.raises(MigrationRequiredError, match="version 1, this code needs 2: run migrate"):
        empty.run(known(empty, FIRST, SECOND).verify())
    empty.run(known(empty, FIRST).verify())


def test_older_code_goes_on_as_far_as_the_schema_allows(empty: Any) -> None:
    empty.run(known(empty, FIRST, SECOND).migrate())
    old = known(empty, FIRST)
    empty.run(old.verify())
    assert empty.run(old.migrate()) == []
    empty.run(known(empty, FIRST, SECOND, THIRD).migrate())
    for operation in (old.verify, old.migrate):
        with pytest.raises(MigrationRequiredError, match="version 3 or newer; this code has ver"):
            empty.run(operation())


def test_a_step_that_fails_leaves_nothing(empty: Any) -> None:
    broken = Migration(2, "broken", ("CREATE TABLE two (a)", "CREATE TABLE two (a)"), 1)
    with pytest.raises(Exception, match="already exists"):
        empty.run(known(empty, FIRST, broken).migrate())
    assert empty.run(known(empty, FIRST).migrate()) == ["1: first"]
