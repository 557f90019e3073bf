"""Bad values, and URLs."""

from __future__ import annotations

from typing import Any

import asyncpg
import psycopg_pool
import pytest

import goncordia
from goncordia.errors import ConfigurationError
from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver
from goncordia_driver_pg.dsn import read_url

BOTH = pytest.mark.parametrize("cls", [AsyncpgDriver, PsycopgDriver])


@BOTH
@pytest.mark.parametrize(
    ("dsn", "says"),
    [
        ("mysql://u:secret@h/d", "'mysql' is not PostgreSQL's"),
        ("host=h password=secret", "it has no scheme"),
        ("postgresql://u:secret@h:abc/d", "its port is not a number from 1 to 65535"),
        ("postgresql://u:secret@h:99999/d", "its port is not a number from 1 to 65535"),
        ("postgresql://u:sec/ret@h/d", "its port is not a number from 1 to 65535; in a password"),
        ("postgresql://u:secret@[::1/d", "its host is none; an IPv6 address is in brackets"),
        (None, "NoneType is not a DSN"),
        (5, "int is not a DSN"),
    ],
)
def test_what_is_no_dsn_is_refused(cls: Any, dsn: object, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        cls(dsn)
    assert "secret" not in str(caught.value)
    assert str(caught.value).startswith("pool: ")


@BOTH
@pytest.mark.parametrize("host", ["h", "h:5432", "[::1]", "[::1]:5432", "a:5432,b:5433", "u:p@h:1"])
def test_hosts_and_ports(cls: Any, host: str) -> None:
    cls(f"postgresql://{host}/d")


@BOTH
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"schema": ""}, "schema: '' is not a name"),
        ({"schema": "x" * 64}, "schema: "),
        ({"schema": 5}, "schema: 5 is not a string"),
        ({"side": "mysql://h/d"}, "side: 'mysql'"),
        ({"pool_size": 0}, "pool_size: 0 is not a whole number"),
        ({"pool_size": True}, "pool_size: True is not a whole number"),
        ({"timeout": 0}, "timeout: 0 is not a number of seconds"),
        ({"timeout": "5"}, "timeout: '5' is not a number of seconds"),
    ],
)
def test_bad_options_are_refused(cls: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        cls("postgresql://h/d", **options)


def test_psycopg_refuses_what_libpq_does_not_understand() -> None:
    with pytest.raises(ConfigurationError, match="pool: libpq does not understand it"):
        PsycopgDriver("postgresql://h/d?nonsense=1")


async def test_pools_of_the_other_library_are_refused() -> None:
    pool: Any = psycopg_pool.AsyncConnectionPool("", open=False)
    with pytest.raises(ConfigurationError, match="for which PsycopgDriver is made"):
        AsyncpgDriver(pool)
    other: Any = asyncpg.create_pool("postgresql://h/d", min_size=0)
    with pytest.raises(ConfigurationError, match="for which AsyncpgDriver is made"):
        PsycopgDriver(other)


async def test_one_connection_is_no_pool(db: Any, sync_db: Any) -> None:
    for cls, connection in ((AsyncpgDriver, db), (PsycopgDriver, sync_db)):
        with pytest.raises(ConfigurationError, match="takes a pool or a DSN"):
            cls(connection)


@pytest.mark.parametrize(
    ("url", "cls"),
    [
        ("postgresql://u@h/d", AsyncpgDriver),
        ("postgres://u@h/d", AsyncpgDriver),
        ("postgresql+psycopg://u@h/d", PsycopgDriver),
    ],
)
def test_a_url_picks_the_driver(url: str, cls: type) -> None:
    driver = goncordia.connect(url)
    assert type(driver) is cls
    assert driver.capabilities.wakeups == "all"


def test_a_url_holds_the_drivers_own_options() -> None:
    url = "postgresql+psycopg://u:p%40@h:5/d?schema=my+jobs&sslmode=require&side=x&prepare=false"
    read = read_url(url)
    assert read == ("postgresql://u:p%40@h:5/d?sslmode=require", "my jobs", "x", False)
    assert read_url("postgres://h/d") == ("postgresql://h/d", "goncordia", None, True)
    with pytest.raises(ConfigurationError, match="prepare: 'maybe' is not true or false"):
        read_url("postgresql://h/d?prepare=maybe")


def test_without_prepared_statements_nobody_listens() -> None:
    for cls in (AsyncpgDriver, PsycopgDriver):
        quiet = cls("postgresql://h/d", prepare=False)
        assert quiet.capabilities.wakeups == "none"
        assert quiet.listener() is None
        aside = cls("postgresql://h/d", prepare=False, side="postgresql://s/d")
        assert aside.capabilities.wakeups == "all"
        assert aside.listener() is not None
