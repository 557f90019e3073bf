from __future__ import annotations

import pytest

from goncordia_bench.harness.model import Case, Key, Measure, Sample, Setting, Subject
from goncordia_bench.harness.stats import Spread, evaluate, percentile


def nothing(setting: Setting) -> dict[str, float]:
    return {}


def case_of(*measures: Measure) -> Case:
    return Case("c", "C", "", (Subject("a", nothing), Subject("b", nothing)), measures)


def sample(subject: str, number: int, value: float) -> Sample:
    return Sample("c", subject, number, 0.0, 1.0, {"x": value})


A, B = Key("a", "x"), Key("b", "x")


def test_a_ratio_is_taken_round_by_round() -> None:
    # The medians alone would give 20 / 5; side by side it is 2, 4 and 8.
    samples = [sample("a", 0, 10), sample("a", 1, 20), sample("a", 2, 40)]
    samples += [sample("b", n, 5) for n in range(3)]
    (result,) = evaluate(case_of(Measure("m", A, B)), samples)
    assert result.value == Spread(4, 2, 8)
    assert result.of == Spread(20, 10, 40)
    assert result.against == Spread(5, 5, 5)
    assert result.rounds == 3


def test_pairs_and_not_medians_make_the_ratio() -> None:
    samples = [sample("a", 0, 1), sample("a", 1, 10), sample("a", 2, 100)]
    samples += [sample("b", 0, 100), sample("b", 1, 1), sample("b", 2, 10)]
    (result,) = evaluate(case_of(Measure("m", A, B)), samples)
    assert result.value == Spread(10, 0.01, 10)


def test_rounds_in_which_one_side_is_missing_are_left_out() -> None:
    samples = [sample("a", 0, 6), sample("a", 1, 100), sample("b", 0, 3)]
    (result,) = evaluate(case_of(Measure("m", A, B)), samples)
    assert (result.value.median, result.rounds) == (2, 1)


def test_rounds_in_which_the_other_did_nothing_are_left_out() -> None:
    samples = [sample("a", 0, 6), sample("a", 1, 100), sample("b", 0, 3), sample("b", 1, 0)]
    (result,) = evaluate(case_of(Measure("m", A, B)), samples)
    assert (result.value.median, result.rounds) == (2, 1)


def test_measures_without_any_figure_give_no_result() -> None:
    assert evaluate(case_of(Measure("m", A, B)), [sample("a", 0, 6)]) == []


def test_samples_of_other_cases_play_no_part() -> None:
    other = Sample("d", "a", 0, 0.0, 1.0, {"x": 7.0})
    assert evaluate(case_of(Measure("m", A)), [other]) == []


@pytest.mark.parametrize(
    ("least", "most", "verdict"),
    [
        (None, None, "reported"),
        (5.0, None, "reached"),
        (5.1, None, "missed"),
        (None, 5.0, "reached"),
        (None, 4.9, "missed"),
    ],
)
def test_the_median_is_judged(least: float | None, most: float | None, verdict: str) -> None:
    samples = [sample("a", 0, 1), sample("a", 1, 5), sample("a", 2, 9)]
    (result,) = evaluate(case_of(Measure("m", A, at_least=least, at_most=most)), samples)
    assert result.verdict == verdict


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(n) for n in range(100, 0, -1)]
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.99) == 99
    assert percentile(values, 1.0) == 100
    assert percentile([3.0], 0.5) == 3
    assert percentile([1.0, 2.0, 3.0], 0.5) == 2
