"""The forms of things on the wire, without a server."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from importlib import resources
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goncordia.driver import After, At, NewJob, Wake
from goncordia.errors import ConfigurationError
from goncordia_driver_redis.keys import Keys
from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.wire.jobs import JobReader, encode_job
from goncordia_driver_redis.wire.layout import NUMBERS
from goncordia_driver_redis.wire.times import (
    from_micros,
    micros,
    seconds_to_micros,
    when_to_wire,
)
from goncordia_driver_redis.wire.wakes import heard

SCRIPTS = resources.files("goncordia_driver_redis.lua")
NAMES = sorted(
    each.name.removesuffix(".lua") for each in SCRIPTS.iterdir() if each.name.endswith(".lua")
)


@given(st.datetimes(datetime(1685, 1, 1), datetime(2255, 1, 1)))  # noqa: DTZ001  # made aware
def test_times_come_back(time: datetime) -> None:
    aware = time.replace(tzinfo=UTC)
    assert from_micros(float(micros(aware))) == aware


def test_times_beyond_the_calendar() -> None:
    day = timedelta(days=1)
    for end in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        assert abs(from_micros(float(micros(end))) - end) <= day
    assert from_micros(1e300) > datetime(9999, 12, 30, tzinfo=UTC)
    assert when_to_wire(After(1e300))[1] == seconds_to_micros(1e299)
    assert when_to_wire(None) == (NUMBERS["NOW"], 0)
    assert when_to_wire(After(0.5)) == (NUMBERS["IN"], 500_000)
    assert when_to_wire(At(datetime(1970, 1, 2, tzinfo=UTC))) == (NUMBERS["AT"], 86_400_000_000)


def test_a_plain_job_is_short() -> None:
    job = NewJob(id=UUID(int=1), kind="send_email", args=b"x" * 75)
    raw = b"".join(encode_job(job))
    assert len(raw) == 11 + 9 + 12 + 2 + 75
    assert JobReader(0).read(job.id, raw).args == job.args


def test_the_same_bytes_of_other_meaning_are_kept_apart() -> None:
    """A group's and a key's bytes may be the same; a reader must not take them for each other."""
    key = b"\x22\x00" + b"g" * 30
    end = b"gggg\x01\x00\x00\x00"
    raw, _ = encode_job(NewJob(id=UUID(int=1), kind="k", args=b"", unique_key=key))
    keyed = raw[:-8] + end
    grouped = bytes([raw[0] ^ NUMBERS["UNIQUE"] ^ NUMBERS["GROUPED"]]) + keyed[1:]
    reader = JobReader(0)
    assert reader.read(UUID(int=1), keyed).unique_key == key
    row = reader.read(UUID(int=1), grouped)
    assert (row.group, row.group_limit, row.unique_key) == ("g" * 34, 1, None)


@pytest.mark.parametrize("name", NAMES)
def test_scripts_say_what_they_guarantee_and_know_their_names(name: str) -> None:
    own = SCRIPTS.joinpath(f"{name}.lua").read_text("utf-8").splitlines()
    assert own[2].startswith("-- ")
    script = load_script(name)
    assert script.writes == ("no-writes" not in own[0])
    code = "\n".join(
        re.sub(r"'[^']*'", "''", line).partition("--")[0]
        for line in script.text.decode().splitlines()
    )
    names = set(re.findall(r"\b[A-Z][A-Z_]+\b", code))
    made = set(re.findall(r"^\s*local ([A-Z][A-Z_]+)", code, re.MULTILINE))
    assert names - made <= {"ARGV", "KEYS"}


def test_wakes_of_a_later_version_are_a_gap() -> None:
    for message in (b"", b"?", b"jx", b"c123"):
        assert heard(message) == [Wake("gap")]


@pytest.mark.parametrize("prefix", ["", "a" * 101, "a{b", "a}b", "a b", "a\nb", "\x00", 7])
def test_bad_prefixes_are_refused(prefix: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^prefix: "):
        Keys(prefix)


def test_a_prefix_is_a_hash_tag() -> None:
    keys = Keys("größe")
    assert (keys.tag, keys.channel) == ("{größe}:".encode(), "{größe}:wake".encode())
