"""The rounds: in each, every case, and within a case its subjects side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from goncordia_bench.harness.model import Case

__all__ = ["plan"]


def plan(cases: Sequence[Case], rounds: int) -> Iterator[tuple[int, Case, str]]:
    """What to run, in order: round, case, subject.

    The rounds are outermost, so that a noisy minute spoils one round of a measure and not all of
    them; the subjects of a case follow each other, so that both sides of a ratio have the same
    minute. Each round begins with another subject, so that none always runs first.
    """
    for number in range(rounds):
        for case in cases:
            if case.once and number:
                continue
            subjects = [each for each in case.subjects if not (each.once and number)]
            turn = number % len(subjects) if subjects else 0
            for subject in (*subjects[turn:], *subjects[:turn]):
                yield number, case, subject.name
