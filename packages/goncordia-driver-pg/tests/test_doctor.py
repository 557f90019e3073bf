"""What doctor says, and what is refused at the opening."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from goncordia.errors import ConfigurationError
from goncordia_driver_pg.doctor import Server, examine, server
from goncordia_sql import ParamStyle, Rows, run_sync
from goncordia_sql.postgres import PostgresDialect

DIALECT = PostgresDialect(ParamStyle.NUMBERED_DOLLAR)
GOOD = Server(150000, "UTF8", False)


class Answers:
    """Answers one question after the other."""

    def __init__(self, *rows: list[tuple[Any, ...]]) -> None:
        self._rows = list(rows)

    def execute(self, _: object) -> Rows:
        rows = self._rows.pop(0)
        return Rows(rows, len(rows))


def said(
    found: Server = GOOD,
    *,
    switches: tuple[str, ...] = ("on", "on", "on", "on"),
    tables: tuple[tuple[Any, ...], ...] = (),
    old: tuple[Any, ...] = (0, None),
) -> list[tuple[str, str]]:
    answers = Answers([(*switches, "me")], list(tables), [old])
    findings = run_sync(examine(DIALECT, found), answers)
    return [(each.level, each.message) for each in findings]


def table(name: str, *rights: bool, unvacuumed: bool = False, some: bool = True) -> tuple[Any, ...]:
    return (name, unvacuumed, *rights, some)


def test_of_a_good_server_nothing_is_said() -> None:
    tables = (
        table("job", True, True, True, True),
        table("migration", True, False, False, False),
        table("queue", True, False, False, False),
    )
    assert said(tables=tables) == []


@pytest.mark.parametrize(
    ("found", "level", "says"),
    [
        ({"found": GOOD._replace(encoding="LATIN1")}, "error", "encoding is LATIN1"),
        ({"found": GOOD._replace(replica=True)}, "error", "is a replica"),
        ({"switches": ("off", "on", "on", "on")}, "error", "autovacuum is off"),
        ({"switches": ("on", "off", "on", "on")}, "error", "autovacuum is off"),
        ({"switches": ("on", "on", "off", "on")}, "error", "fsync is off"),
        ({"switches": ("on", "on", "on", "off")}, "warning", "synchronous_commit is off"),
        (
            {"tables": (table("job", True, True, True, True, unvacuumed=True),)},
            "error",
            "turned off for the table goncordia.job",
        ),
        (
            {
                "tables": (
                    table("job", True, True, True, False),
                    table("session", False, False, False, False),
                )
            },
            "warning",
            "'me' may enqueue, but not work on jobs: it lacks DELETE on job, SELECT on session",
        ),
        (
            {"tables": (table("job", True, False, True, True),)},
            "warning",
            "'me' may work on jobs, but lacks INSERT on job, to enqueue (handlers, cron); which",
        ),
        (
            {"tables": (table("job", True, False, True, False),)},
            "warning",
            "but lacks INSERT on job, to enqueue (handlers, cron), DELETE on job, to delete "
            "finished ones (retention); which rights",
        ),
        (
            {
                "tables": (
                    table("job", True, False, True, True),
                    table("session", True, False, True, True),
                )
            },
            "error",
            "'me' may neither enqueue nor work on jobs: it lacks INSERT on job, INSERT on session",
        ),
        (
            {"tables": (table("job", False, True, False, False, some=True),)},
            "warning",
            "'me' may enqueue, but not work on jobs: it lacks SELECT on job, UPDATE on job",
        ),
        (
            {"tables": (table("job", False, True, False, False, some=False),)},
            "error",
            "'me' may neither enqueue nor work on jobs",
        ),
        ({"old": (2, 1800.0)}, "warning", "2 transactions have been open for more than 10 minutes"),
    ],
)
def test_each_trouble_is_said(found: dict[str, Any], level: str, says: str) -> None:
    ((found_level, message),) = said(**found)
    assert found_level == level
    assert says in message


def test_an_old_server_is_refused() -> None:
    GOOD._replace(version=140000).check()
    with pytest.raises(ConfigurationError, match="is PostgreSQL 13; Goncordia needs 14"):
        GOOD._replace(version=130022).check()


def test_the_version_is_the_servers_number() -> None:
    found = run_sync(server(DIALECT), Answers([(130022, "UTF8", False)]))
    assert found == Server(130022, "UTF8", False)
    with pytest.raises(ConfigurationError, match=r"^dsn: the server is PostgreSQL 13; Goncordia"):
        found.check()


async def test_the_opening_looks_at_the_version(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goncordia_driver_pg.doctor._OLDEST", 990000)
    driver = make()
    with pytest.raises(ConfigurationError, match="Goncordia needs 14"):
        await driver.open()
    await driver.aclose()


async def test_on_a_server(driver: Any) -> None:
    findings = [
        each for each in await driver.check() if "transactions have been" not in each.message
    ]
    assert [each.message.partition(":")[0] for each in findings] in ([], ["fsync is off"])


async def test_a_schema_that_is_not_there(make: Any) -> None:
    async with make() as driver:
        (finding,) = await driver.check()
    assert finding.level == "error"
    assert "run migrate() or `goncordia migrate`" in finding.message


async def test_roles(make: Any, pg_roles: Any, db: asyncpg.Connection) -> None:
    async with make(pg_roles.migrator, schema=pg_roles.schema) as migrator:
        await migrator.migrate()
    pg_roles.grant("""
        GRANT USAGE ON SCHEMA {schema} TO {enqueuer};
        GRANT SELECT ON {schema}.migration TO {enqueuer};
        GRANT INSERT, SELECT (id, held_key, unique_hold, unique_until) ON {schema}.job
            TO {enqueuer}
        """)
    async with make(pg_roles.enqueuer, schema=pg_roles.schema) as driver:
        messages = [each.message for each in await driver.check()]
    assert [each for each in messages if "may enqueue, but not work on jobs" in each]
