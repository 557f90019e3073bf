from __future__ import annotations

from goncordia_bench.harness.model import Case, Setting, Subject
from goncordia_bench.harness.rounds import plan


def nothing(setting: Setting) -> dict[str, float]:
    return {}


def case_of(name: str, subjects: str, *, once: bool = False) -> Case:
    return Case(name, name, "", tuple(Subject(each, nothing) for each in subjects), (), once)


def test_rounds_are_outermost_and_begin_with_another_subject_each() -> None:
    steps = [(n, case.name, who) for n, case, who in plan([case_of("x", "ab")], 3)]
    assert steps == [
        (0, "x", "a"), (0, "x", "b"),
        (1, "x", "b"), (1, "x", "a"),
        (2, "x", "a"), (2, "x", "b"),
    ]  # fmt: skip


def test_the_subjects_of_a_case_follow_each_other() -> None:
    cases = [case_of("x", "abc"), case_of("y", "de")]
    names = [case.name for _, case, _ in plan(cases, 2)]
    assert names == ["x"] * 3 + ["y"] * 2 + ["x"] * 3 + ["y"] * 2


def test_a_slow_subject_runs_in_the_first_round_only() -> None:
    slow = Subject("slow", nothing, once=True)
    case = Case("x", "x", "", (Subject("a", nothing), slow, Subject("b", nothing)), ())
    steps = [(n, who) for n, _, who in plan([case], 2)]
    assert steps == [(0, "a"), (0, "slow"), (0, "b"), (1, "b"), (1, "a")]
    only = Case("y", "y", "", (slow,), ())
    assert [n for n, _, _ in plan([only], 3)] == [0]


def test_a_long_case_runs_in_the_first_round_only() -> None:
    steps = [
        (n, case.name)
        for n, case, _ in plan([case_of("long", "a", once=True), case_of("x", "a")], 2)
    ]
    assert steps == [(0, "long"), (0, "x"), (1, "x")]
