"""Bad values, and URLs."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import asyncpg
import psycopg_pool
import pytest

import goncordia
from goncordia.errors import ConfigurationError
from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver
from goncordia_driver_pg.addresses import where
from goncordia_driver_pg.asyncpg_parameters import WORDS as ASYNCPG
from goncordia_driver_pg.dsn import read_url
from goncordia_driver_pg.psycopg_parameters import WORDS as LIBPQ

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
        ("postgresql://u:sec?ret@h/d", "what follows '[?]' is not made of name=value"),
        ("postgresql://u:7?secret@h/d", "what follows '[?]' is not made of name=value"),
        ("postgresql://u:sec#ret@h/d", "there is a '#' in it; in a password '/' is written"),
        ("postgresql://u:secret@[::1/d", "its host is none; an IPv6 address is in brackets"),
        ("postgresql://u:secret@h/d?port=abc", "its port is not a number from 1 to 65535"),
        ("postgresql://u:secret@a,,b/d", "there is an empty place in its list of hosts"),
        ("postgresql://u:secret@,/d", "there is an empty place in its list of hosts"),
        ("postgresql:///d?host=a,&password=secret", "an empty place in its list of hosts"),
        ("postgresql://u:secret@a,b/d?port=1,2,3", "port: there are 3 ports for 2 hosts"),
        ("postgresql://u:secret@a/d?host=b", "'host' follows '[?]' and is before it as well"),
        ("postgresql://u:secret@a:1/d?port=2", "'port' follows '[?]' and is before it as well"),
        ("postgresql://u:secret@a/d?user=v", "'user' follows '[?]' and is before it as well"),
        ("postgresql://u:x@a/d?password=secret", "'password' follows '[?]' and is before it"),
        ("postgresql://u:secret@a/d?dbname=e", "'dbname' follows '[?]' and is before it"),
        ("postgresql://u:secret@h/d?sslmod=require", "'sslmod' is no word .* mean 'sslmode'[?]"),
        ("postgresql://u:secret@h/d?ssl=require", "'ssl' is no word of a DSN; .* 'sslmode'[?]"),
        ("postgresql://u:secret@h/d?hots=a", "'hots' is no word of a DSN; did you mean 'host'[?]"),
        ("postgresql://u@h/d?passwd=secret", "'passwd' is no word .* did you mean 'password'[?]"),
        ("postgresql://u:secret@h/d?schema=x", "'schema' is an argument of the driver, or a word"),
        ("postgresql://u:secret@h/d?sslmode=on", "sslmode: 'on' is not one of disable, allow,"),
        (
            "postgresql://u:secret@h/d?target_session_attrs=readwrite",
            "target_session_attrs: 'readwrite' is not one of any, read-write, read-only, primary",
        ),
        (
            "postgresql://u:secret@h/d?sslmode=allow&sslmode=disable",
            "'sslmode' is in it twice; give it once",
        ),
        ("postgresql://u:secret@h/d?sslmode", "what follows '[?]' is not made of name=value"),
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
@pytest.mark.parametrize(
    "rest",
    [
        "h/d",
        "h:5432/d",
        "[::1]/d",
        "[::1]:5432/d",
        "a:5432,b:5433/d",
        "a,b/d?target_session_attrs=read-write&sslmode=verify-full",
        "u:p@h:1/d",
        "u:p%40%2F%3A%3F%23@h:1",
        "/d?host=/run/postgresql&port=5433",
        "/d?host=a,b&port=1,2",
        "a,b?dbname=d",
        "h/d?options=-c%20lock_timeout%3D5&application_name=shop",
        "",
    ],
)
def test_what_is_right_is_taken(cls: Any, rest: str) -> None:
    cls(f"postgresql://{rest}")


def test_an_address_in_brackets_that_is_not_the_first() -> None:
    url = "postgresql://a:1,[::1]:2/d"
    PsycopgDriver(url)
    try:
        urlsplit(url)
    except ValueError:  # as the Pythons with the latest security updates say
        with pytest.raises(ConfigurationError, match="put it first"):
            AsyncpgDriver(url)
    else:
        AsyncpgDriver(url)
    AsyncpgDriver("postgresql://[::1]:2,a:1/d")


def test_what_only_one_library_knows() -> None:
    url = "postgresql://h/d?connect_timeout=3"
    PsycopgDriver(url)
    with pytest.raises(ConfigurationError, match="asyncpg has no 'connect_timeout' in a DSN"):
        AsyncpgDriver(url)
    url = "postgresql://h/d?statement_timeout=3"
    AsyncpgDriver(url)
    says = "libpq has no 'statement_timeout' in a DSN; a setting of the server is given as options="
    with pytest.raises(ConfigurationError, match=says):
        PsycopgDriver(url)


def test_no_setting_of_the_server_is_taken_for_a_slip(sync_db: Any) -> None:
    names = sync_db.execute(
        "SELECT name FROM pg_settings WHERE context LIKE ANY(%s)",
        [["user", "superuser%", "%backend"]],
    ).fetchall()
    assert len(names) > 100
    for (name,) in names:
        AsyncpgDriver(f"postgresql://h/d?{name}=1")


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ("h/d", "h:5432"),
        ("u:secret@h:1/d", "h:1"),
        ("u:secret@a,b:7/d", "a:5432, b:7"),
        ("[::1]:5/d", "[::1]:5"),
        ("/d?host=a,b&port=1,2", "a:1, b:2"),
        ("/d?host=%2Ftmp&port=5433", "/tmp:5433"),
        ("a,b/d?port=6", "a:6, b:6"),
        ("/d", "the server"),
    ],
)
def test_where_it_is(rest: str, says: str) -> None:
    assert where(f"postgresql://{rest}") == says


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
        PsycopgDriver("postgresql://h/d?user=%zz")


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
    url = "postgresql+psycopg://u:p%40@h:5/d?schema=my+jobs&options=-c%20a%3Db&side=x&prepare=false"
    read = read_url(url, LIBPQ)
    # libpq does not take '+' for a space.
    assert read == ("postgresql://u:p%40@h:5/d?options=-c%20a%3Db", "my jobs", "x", False)
    assert read_url("postgres://h/d", ASYNCPG) == ("postgresql://h/d", "goncordia", None, True)
    with pytest.raises(ConfigurationError, match="prepare: 'maybe' is not true or false"):
        read_url("postgresql://h/d?prepare=maybe", ASYNCPG)
    for words in (ASYNCPG, LIBPQ):
        with pytest.raises(ConfigurationError, match=r"url: 'shema' is no .* mean 'schema'[?]"):
            read_url("postgresql://h/d?shema=jobs", words)


def test_without_prepared_statements_nobody_listens() -> None:
    for cls in (AsyncpgDriver, PsycopgDriver):
        quiet = cls("postgresql://h/d", prepare=False)
        assert quiet.capabilities.wakeups == "none"
        assert quiet.listener() is None
        aside = cls("postgresql://h/d", prepare=False, side="postgresql://s/d")
        assert aside.capabilities.wakeups == "all"
        assert aside.listener() is not None
