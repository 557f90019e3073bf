"""What is marked as of this process, whatever class it is of."""

from __future__ import annotations

from goncordia.driver.connections import forks
from goncordia.driver.connections.forks import of_this_process


class Unhashable:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]  # as of a class that says only what equals


class Slotted:
    __slots__ = ()


def test_things_without_a_hash_are_marked_by_identity() -> None:
    one, two = Unhashable(), Unhashable()
    assert of_this_process(one) is one
    assert of_this_process(two) is two
    marked = [thing for thing in forks._things.values() if isinstance(thing, Unhashable)]
    assert len(marked) == 2


def test_things_without_weak_references_are_left_to_their_owner() -> None:
    thing = Slotted()
    assert of_this_process(thing) is thing
    assert id(thing) not in forks._things
