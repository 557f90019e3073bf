"""The sorted list, compared with sorting."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from goncordia.memory import ordered
from goncordia.memory.ordered import Ordered

numbers = st.integers(0, 60)
steps = st.lists(st.tuples(st.sampled_from(["add", "remove", "after", "below"]), numbers))


def compare(plan: list[tuple[str, int]]) -> None:
    ours: Ordered[tuple[int]] = Ordered()
    model: list[tuple[int]] = []
    for action, number in plan:
        item = (number,)
        if action == "add" and item not in model:
            ours.add(item)
            insort(model, item)
        elif action == "remove" and item in model:
            ours.remove(item)
            model.remove(item)
        elif action == "after":
            at = bisect_right(model, item)
            assert ours.after(item) == (model[at] if at < len(model) else None)
        elif action == "below":
            assert list(ours.below(item)) == model[: bisect_left(model, item)][::-1]
        assert list(ours) == model
        assert len(ours) == len(model)
        assert bool(ours) is bool(model)
        if model:
            assert ours.first == model[0]
    assert list(ours.below(None)) == model[::-1]


@given(steps)
def test_it_does_what_a_sorted_list_does(plan: list[tuple[str, int]]) -> None:
    compare(plan)


@given(st.permutations(range(60)), steps)
@settings(max_examples=50)
def test_with_many_small_chunks(start: list[int], plan: list[tuple[str, int]]) -> None:
    with patch.object(ordered, "_CHUNK", 2):
        compare([("add", number) for number in start] + plan)


def test_ten_thousand_in_any_order() -> None:
    ours: Ordered[tuple[int]] = Ordered()
    items = [(number * 7919 % 10_007,) for number in range(10_000)]
    for item in items:
        ours.add(item)
    assert list(ours) == sorted(items)
    for item in items[::2]:
        ours.remove(item)
    assert list(ours) == sorted(items[1::2])
    assert ours.after((0,)) == min(items[1::2])
