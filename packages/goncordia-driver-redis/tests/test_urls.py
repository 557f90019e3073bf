"""URLs: what they mean, and what is said of those that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import goncordia
from goncordia.errors import ConfigurationError
from goncordia_driver_redis import RedisDriver
from goncordia_driver_redis.clients.parameters import Address
from goncordia_driver_redis.clients.places import ClusterPlace, FixedPlace, SentinelPlace
from goncordia_driver_redis.clients.urls import read_url

SECRET = "s3cr3t"


def place(url: str) -> Any:
    return read_url("url", url, ours=True).place(b"{p}:")


@pytest.mark.parametrize(
    ("url", "address", "tls", "options"),
    [
        ("redis://h", Address("h", 6379), False, {}),
        ("redis://h/", Address("h", 6379), False, {}),
        ("REDIS://h:1/2", Address("h", 1), False, {"db": 2}),
        ("redis://h?db=3", Address("h", 6379), False, {"db": 3}),
        ("valkey://h:7", Address("h", 7), False, {}),
        ("rediss://h", Address("h", 6379), True, {}),
        ("valkeys://h?ssl_cert_reqs=none", Address("h", 6379), True, {"ssl_cert_reqs": "none"}),
        ("redis://[::1]:5/0", Address("::1", 5), False, {"db": 0}),
        (
            "redis://al%40ice:p%2Fw%3A@h",
            Address("h", 6379),
            False,
            {"username": "al@ice", "password": "p/w:"},
        ),
        ("redis://:pw@h?protocol=3", Address("h", 6379), False, {"password": "pw", "protocol": 3}),
        (
            "redis://h?client_name=a+b&socket_keepalive=no",
            Address("h", 6379),
            False,
            {"client_name": "a b", "socket_keepalive": False},
        ),
        ("redis+unix:///run/a%20b.sock?db=4", "/run/a b.sock", False, {"db": 4}),
        ("redis+unix://:pw@/run/r.sock", "/run/r.sock", False, {"password": "pw"}),
    ],
)
def test_one_server(url: str, address: object, tls: bool, options: dict[str, Any]) -> None:
    found = place(url)
    assert isinstance(found, FixedPlace)
    parameters = found.parameters
    assert (parameters.address, parameters.tls, parameters.options) == (address, tls, options)


def test_bounds() -> None:
    parameters = place("redis://h?socket_timeout=0.5&socket_connect_timeout=2").parameters
    assert (parameters.answer, parameters.connect) == (0.5, 2.0)
    parameters = place("redis://h").parameters
    assert (parameters.answer, parameters.connect) == (10.0, 5.0)


def test_a_cluster() -> None:
    found = place("rediss+cluster://u:p@a:1,[::2]:3,c")
    assert isinstance(found, ClusterPlace)
    assert str(found) == "the cluster at a:1, [::2]:3, c:6379"
    assert found.parameters.tls
    assert found.parameters.options == {"username": "u", "password": "p"}


def test_sentinels_have_logins_of_their_own() -> None:
    found = place("redis+sentinel://u:p@a,b:2/jobs/3?sentinel_password=x&socket_timeout=7")
    assert isinstance(found, SentinelPlace)
    assert str(found) == "'jobs' of the Sentinels a:26379, b:2"
    assert found.parameters.options == {"username": "u", "password": "p", "db": 3}
    question = next(found.find())
    assert question.command[-1] == b"jobs"
    assert question.parameters.address == Address("a", 26379)
    assert question.parameters.options == {"password": "x"}


def test_words_of_the_driver() -> None:
    read = read_url(
        "url", "redis+unix:///s?prefix=a%26b&db=1&keep_finished=9&replicas=2&fsync=yes", ours=True
    )
    assert read.arguments == {
        "prefix": "a&b",
        "keep_finished": 9,
        "replicas": 2,
        "fsync": True,
    }
    assert read.rest == "redis+unix:///s?db=1"
    driver = goncordia.connect("redis://h?prefix=mine&pool_size=3")
    assert isinstance(driver, RedisDriver)
    assert driver.prefix == "mine"


@pytest.mark.parametrize("scheme", ["rediss", "redis+unix", "redis+cluster", "valkey", "valkeys"])
def test_each_scheme_is_claimed(scheme: str) -> None:
    rest = "/run/r.sock" if scheme == "redis+unix" else "h"
    assert isinstance(goncordia.connect(f"{scheme}://{rest}"), RedisDriver)
    assert isinstance(goncordia.connect("redis+sentinel://h/jobs"), RedisDriver)
    assert isinstance(goncordia.connect("rediss+sentinel://h/jobs"), RedisDriver)
    assert isinstance(goncordia.connect("rediss+cluster://h"), RedisDriver)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (f"u:{SECRET}@h", "it has no scheme; a URL looks like 'redis://localhost:6379/0'"),
        (f"rediis://:{SECRET}@h", "its scheme 'rediis' is not known; did you mean 'redis'?"),
        ("unix:///run/r.sock", "did you mean 'redis+unix'?"),
        ("http://h", "it is one of redis, rediss, valkey"),
        (f"redis://:{SECRET}@[h", "an IPv6 address is in brackets"),
        (f"redis://:{SECRET}#@h", "'#' as %23"),
        (f"redis://:{SECRET}@h#x", "there is a '#' in it"),
        (f"redis://u:{SECRET}:x@h", "what is before its host is not user:password"),
        (f"redis://u:{SECRET}@x@h", "what is before its host is not user:password"),
        (f"redis://u:1/{SECRET}@h", "there is an '@' behind its host; in a user's name"),
        (f"redis://u:x?{SECRET}=y@h/0", "there is an '@' behind its host"),
        (f"redis://:x@h?db=1{SECRET}@h", "there is an '@' behind its host"),
        (f"redis://h?socket_timeout={SECRET}@h", "there is an '@' behind its host"),
        (f"u:{SECRET}://h", "it has no scheme"),
        (f"redis://{SECRET}@h", "a user without a password"),
        ("redis://", "there is no host in it"),
        (f"redis://:{SECRET}@", "there is no host in it"),
        ("redis://:6379", "an empty place for a host"),
        ("redis+cluster://a,,b", "an empty place for a host"),
        (f"redis://u:{SECRET}", "its port is not a number from 1 to 65535"),
        ("redis://h:0", "its port is not a number"),
        ("redis://h:70000", "its port is not a number"),
        ("redis://a,b", "for a cluster the scheme is redis+cluster, for Sentinels redis+sentinel"),
        ("redis://h/jobs", "db: 'jobs' is not the number of a database, such as 0"),
        ("redis://h/1/2", "its path has too many parts"),
        ("redis://h/1?db=2", "'db' follows '?', and its path has a number as well"),
        ("redis://h?db=-1", "db: '-1' is not the number of a database"),
        ("redis+unix://h/run/r.sock", "there is no path of a socket in it"),
        ("redis+unix://", "there is no path of a socket in it"),
        ("redis+cluster://h/1", "a cluster has no numbered databases"),
        ("redis+cluster://h?db=1", "a cluster has no numbered databases"),
        ("redis+sentinel://h", "there is no name of the primary in it"),
        ("redis+sentinel://h/jobs/x", "db: 'x' is not the number"),
        (f"redis://h?{SECRET}", "is not made of name=value"),
        ("redis://h?db=1&db=2", "'db' is in it twice; give it once"),
        ("redis://h?prefx=a", "'prefx' is no word of this URL; did you mean 'prefix'?"),
        ("redis://h?socket_timout=1", "did you mean 'socket_timeout'?"),
        ("redis://h?zzz=1", "'zzz' is no word of this URL; it is one of client_name"),
        ("redis://h?socket_timeout=0", "socket_timeout: '0' is not a number of seconds above 0"),
        ("redis://h?socket_timeout=nan", "'nan' is not a number of seconds above 0"),
        ("redis://h?socket_connect_timeout=x", "socket_connect_timeout: 'x' is not a number"),
        ("redis://h?protocol=4", "protocol: '4' is not 2 or 3"),
        ("redis://h?socket_keepalive=maybe", "socket_keepalive: 'maybe' is not true or false"),
        ("redis://h?client_name=", "client_name: it is empty"),
        ("redis://h?ssl_cert_reqs=none", "'ssl_cert_reqs' is for TLS, and the scheme is not"),
        ("rediss://h?ssl_cert_reqs=x", "'x' is not one of required, optional, none"),
        ("rediss://h?ssl_ca_certs=/no/such", "ssl_ca_certs: there is no file '/no/such'"),
        (f"redis://h?password={SECRET}", "it is before the host, as in ':password@host'"),
        ("redis://h?max_connections=5", "the driver's word is pool_size"),
        ("redis://h?decode_responses=true", "the driver reads bytes, whatever it is"),
        ("redis://h?pool_size=many", "pool_size: 'many' is not a whole number"),
        ("redis://h?pool_size=0", "pool_size: 0 is not a whole number from 1"),
        ("redis://h?replicas=-1", "replicas: '-1' is not a whole number"),
        ("redis://h?fsync=2", "fsync: '2' is not true or false"),
        ("redis://h?prefix=%7Bx%7D", "prefix: '{x}'"),
        ("redis://h?sentinel_password=x", "'sentinel_password' is no word of this URL"),
    ],
)
def test_what_is_said_of_a_wrong_one(url: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as failed:
        RedisDriver.from_url(url)
    assert says in str(failed.value)
    assert SECRET not in str(failed.value)


def test_files_of_tls(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.touch()
    found = place(f"rediss://h?ssl_ca_certs={file}&ssl_check_hostname=false")
    assert found.parameters.options == {"ssl_ca_certs": str(file), "ssl_check_hostname": False}


@pytest.mark.parametrize("word", ["prefix=x", "keep_finished=1", "replicas=1", "fsync=1"])
def test_words_of_the_driver_are_arguments_in_code(word: str) -> None:
    name = word.partition("=")[0]
    with pytest.raises(ConfigurationError, match=f"client: '{name}' is an argument of the driver"):
        RedisDriver(f"redis://h?{word}")
