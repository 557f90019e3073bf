from __future__ import annotations

import pytest

from goncordia_sql import ParamStyle, Sql
from goncordia_sql.statement import Statement


def test_a_parameter_said_twice_has_one_number() -> None:
    sql = Sql("SELECT :a, :b, :a", ParamStyle.NUMBERED_DOLLAR)
    assert sql.text == "SELECT $1, $2, $1"
    assert sql.names == ("a", "b")
    assert sql(a=1, b=2).params == [1, 2]


def test_dollars() -> None:
    sql = Sql("SELECT :a::text, :b, :a", ParamStyle.NUMBERED_DOLLAR)
    assert sql.text == "SELECT $1::text, $2, $1"
    assert sql(b=2, a=1).params == [1, 2]


@pytest.mark.parametrize(("style", "mark"), [(ParamStyle.QMARK, "?"), (ParamStyle.FORMAT, "%s")])
def test_a_mark_for_every_value(style: ParamStyle, mark: str) -> None:
    sql = Sql("SELECT :a, :b, :a", style)
    assert sql.text == f"SELECT {mark}, {mark}, {mark}"
    assert sql(a=1, b=2).params == (1, 2, 1)
    assert list(sql.batch([(1, 2), (3, 4)]).params) == [(1, 2, 1), (3, 4, 3)]


def test_what_is_quoted_introduces_no_parameter() -> None:
    sql = Sql("""SELECT ':a', ':b"' FROM "my ""jobs :c" WHERE d = :d""", ParamStyle.NUMBERED_DOLLAR)
    assert sql.text == """SELECT ':a', ':b"' FROM "my ""jobs :c" WHERE d = $1"""
    assert sql.names == ("d",)


def test_a_statement_may_be_a_transaction_of_its_own_on_demand() -> None:
    sql = Sql("SELECT :a", ParamStyle.NUMBERED_DOLLAR)
    assert not sql(a=1).alone
    assert sql.alone(a=1) == Statement(sql, [1], alone=True)
    assert not sql.batch([(1,)]).alone


def test_names_stay() -> None:
    sql = Sql("SELECT :a, :b, :a", ParamStyle.NAMED)
    assert sql.text == "SELECT :a, :b, :a"
    assert sql(a=1, b=2).params == {"a": 1, "b": 2}
    assert list(sql.batch([(1, 2)]).params) == [{"a": 1, "b": 2}]


def test_a_percent_sign_is_doubled_only_where_it_has_a_meaning() -> None:
    assert Sql("SELECT 5 % :a", ParamStyle.FORMAT).text == "SELECT 5 %% %s"
    assert Sql("SELECT 5 % :a", ParamStyle.QMARK).text == "SELECT 5 % ?"


def test_a_missing_value_is_an_error_and_one_too_many_is_none() -> None:
    sql = Sql("SELECT :a", ParamStyle.NUMBERED_DOLLAR)
    with pytest.raises(KeyError):
        sql(b=1)
    assert sql(a=1, b=2).params == [1]


def test_conflicts_are_allowed_on_demand() -> None:
    sql = Sql("INSERT INTO t VALUES (:a)", ParamStyle.NUMBERED_DOLLAR)
    assert not sql(a=1).conflict_allowed
    assert sql.with_conflict(a=1) == Statement(sql, [1], conflict_allowed=True)
    assert sql.bind((1,), conflict_allowed=True).conflict_allowed


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT 1", True),
        ("  WITH a AS (SELECT 1) SELECT * FROM a", True),
        ("INSERT INTO t VALUES (1) RETURNING a", True),
        ("INSERT INTO t SELECT 1", False),
        ("UPDATE t SET a = 1", False),
        ("CREATE TABLE selected (a)", False),
        ("PRAGMA data_version", True),
    ],
)
def test_it_knows_whether_it_gives_rows(text: str, rows: bool) -> None:
    assert Sql(text, ParamStyle.QMARK).rows is rows


def test_it_shows_its_text() -> None:
    assert repr(Sql("SELECT :a", ParamStyle.NUMBERED_DOLLAR)) == "Sql('SELECT $1')"


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        (" SELECT 1 FOR UPDATE", True),
        ("SELECTED", False),
        ("WITH a AS (SELECT 1) DELETE FROM t", False),
        ("INSERT INTO t SELECT 1", False),
    ],
)
def test_it_knows_whether_it_only_reads(text: str, reads: bool) -> None:
    assert Sql(text, ParamStyle.NUMBERED_DOLLAR).reads is reads
