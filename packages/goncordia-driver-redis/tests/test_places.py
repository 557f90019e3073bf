"""Finding the primary, without servers: what is asked, and what the answers mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis.crc import key_slot
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from goncordia.errors import ConfigurationError, DriverUnavailableError
from goncordia_conformance.servers.redis import RedisServer
from goncordia_driver_redis.clients.links import connect, connect_sync
from goncordia_driver_redis.clients.parameters import Address, Parameters
from goncordia_driver_redis.clients.places import ClusterPlace, FixedPlace, Place, SentinelPlace

A, B, C = Address("a", 1), Address("b", 2), Address("c", 3)
PARAMETERS = Parameters(Address("", 0), options={"password": "p"})
SLOT = int(key_slot(b"k"))

Answers = dict[Address, Any]


def sentinels() -> SentinelPlace:
    return SentinelPlace(PARAMETERS, [Parameters(each) for each in (A, B, C)], "jobs")


def cluster(remap: Callable[[tuple[str, int]], tuple[str, int]] | None = None) -> ClusterPlace:
    return ClusterPlace(PARAMETERS, [A, B], b"k", remap)


def slots(*primaries: tuple[bytes | None, int], mine: int = 0) -> list[Any]:
    """As CLUSTER SLOTS tells it; the slot is that primary's."""
    found: list[Any] = []
    for number, (host, port) in enumerate(primaries):
        first, last = (SLOT, SLOT) if number == mine else (SLOT + 1 + number, SLOT + 1 + number)
        found.append([first, last, [host, port, b"id", []], [b"replica", 9, b"id", []]])
    return found


def found(place: Place, answers: Answers) -> tuple[Parameters, list[Any]]:
    """What is found when these are answered, and who was asked; nobody else answers."""
    asked: list[Any] = []
    steps = place.find()
    try:
        question = next(steps)
        while True:
            asked.append(question.parameters.address)
            answer = answers.get(asked[-1], RedisConnectionError("nobody there"))
            question = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
    except StopIteration as end:
        return end.value, asked


def test_the_first_sentinel_that_knows() -> None:
    place = sentinels()
    primary, asked = found(place, {B: None, C: [b"h", b"7"]})
    assert primary == PARAMETERS.at(Address("h", 7))
    assert asked == [A, B, C]
    assert found(place, {}) == (primary, [])  # it is known
    place.forget(place.generation)
    primary, asked = found(place, {C: [b"i", b"8"]})
    assert (primary.address, asked) == (Address("i", 8), [C])  # who knew is asked first


def test_only_the_generation_that_was_wrong_is_forgotten() -> None:
    place = sentinels()
    found(place, {A: [b"h", b"7"]})
    place.forget(place.generation)
    assert place.generation == 1
    place.forget(0)  # another connection finds out the same
    assert place.generation == 1


def test_what_is_in_doubt_is_looked_for_and_good_connections_stay() -> None:
    place = sentinels()
    found(place, {A: [b"h", b"7"]})
    place.doubt()
    assert found(place, {A: [b"h", b"7"]})[1] == [A]
    assert place.generation == 0
    place.doubt()
    found(place, {A: [b"i", b"8"]})
    assert place.generation == 1


def test_sentinels_that_do_not_know() -> None:
    with pytest.raises(ConfigurationError, match=r"a:1, b:2, c:3\) know no primary 'jobs'"):
        found(sentinels(), {A: None, B: None, C: None})
    with pytest.raises(DriverUnavailableError, match="nobody there") as failed:
        found(sentinels(), {A: None, B: None})
    assert failed.value.outcome == "not_applied"


def test_the_owner_of_the_slot() -> None:
    place = cluster()
    primary, asked = found(place, {B: slots((b"x", 5), (b"c", 3), mine=1)})
    assert primary == PARAMETERS.at(C)
    assert asked == [A, B]
    assert str(place) == "c:3, where the cluster at a:1, b:2 says that our keys are"
    place.forget(place.generation)
    _, asked = found(place, {C: slots((b"a", 1))})
    assert asked == [Address("x", 5), C]  # those that are known by now first
    assert str(place) == "the cluster at a:1, b:2"


def test_where_moved_points_to() -> None:
    place = cluster(lambda address: (address[0].upper(), address[1]))
    place.forget(0, ("h", 7))
    assert found(place, {})[0].address == Address("H", 7)
    place.forget(1, ("", 7))  # on the same host as who was asked, whoever that was
    assert found(place, {A: slots((b"c", 3))})[0].address == Address("C", 3)
    ours = sentinels()
    ours.forget(0, ("h", 7))
    assert found(ours, {A: [b"i", b"8"]})[0].address == Address("i", 8)


def test_what_was_asked_before_moved_came_is_not_taken() -> None:
    place = cluster()
    found(place, {A: slots((b"old", 1))})
    place.doubt()
    steps = place.find()
    next(steps)
    place.forget(place.generation, ("new", 1))
    with pytest.raises(StopIteration) as end:
        steps.send(slots((b"old", 1)))
    assert end.value.value.address == Address("new", 1)
    assert place.generation == 1


@pytest.mark.parametrize("host", [None, b"", b"?"])
def test_a_host_that_is_not_told_is_the_one_that_was_asked(host: bytes | None) -> None:
    assert found(cluster(), {A: slots((host, 8))})[0].address == Address("a", 8)


def test_nobody_has_the_slot() -> None:
    with pytest.raises(DriverUnavailableError, match=f"has the slot {SLOT} of our keys: nobody"):
        found(cluster(), {A: [], B: slots((b"x", 5), mine=1)})
    loading = ResponseError("LOADING")
    with pytest.raises(DriverUnavailableError, match="LOADING"):
        found(cluster(), {A: loading, B: loading})
    with pytest.raises(ResponseError, match="no permissions"):
        found(cluster(), {A: _denied()})


def _denied() -> Exception:
    from redis.exceptions import NoPermissionError

    return NoPermissionError("User bob has no permissions")


class Told(FixedPlace):
    """Where others say that the primary is."""

    proves = True


async def test_one_that_is_no_primary_any_more(server: RedisServer) -> None:
    """Older connections to it are of no use either: what they would read is stale."""
    place = Told(Parameters(Address("127.0.0.1", server.port)))
    link, sync = await connect(place), connect_sync(place)
    assert link.is_usable()
    assert sync.is_usable()
    server.ask("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(DriverUnavailableError, match="is not a primary"):
        await connect(place)
    assert not link.is_usable()
    with pytest.raises(DriverUnavailableError, match="is not a primary"):
        connect_sync(place)
    assert not sync.is_usable()
    await link.aclose()
    sync.close()
