from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from goncordia_bench import cli
from goncordia_bench.cases import CASES, cases_named
from goncordia_bench.cli import main
from goncordia_bench.harness import sample
from goncordia_bench.harness.model import Case, Sample
from goncordia_bench.harness.sample import SampleError, take
from goncordia_bench.payload import ARGS, Email, emails, registry_of


def test_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    for case in CASES:
        subjects = [subject.name for subject in case.subjects]
        titles = [measure.title for measure in case.measures]
        assert len(set(subjects)) == len(subjects)
        assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_measures_are_of_subjects_that_are_there(case: Case) -> None:
    subjects = {subject.name for subject in case.subjects}
    for measure in case.measures:
        assert measure.of.subject in subjects
        assert measure.against is None or measure.against.subject in subjects
        assert case.about.strip()


# The latency cases wait for seconds; they run in the bench only.
QUICK = [
    (case, subject.name)
    for case in CASES
    if case.name != "latency" and not case.needs
    for subject in case.subjects
]


@pytest.mark.parametrize(("case", "subject"), QUICK, ids=lambda each: getattr(each, "name", each))
def test_every_subject_gives_the_figures_that_are_measured(
    case: Case, subject: str, tmp_path: Path
) -> None:
    found = take(case, subject, number=3, quick=True, scratch=tmp_path)
    assert (found.case, found.subject, found.round) == (case.name, subject, 3)
    keys = [measure.of for measure in case.measures]
    keys += [measure.against for measure in case.measures if measure.against is not None]
    for key in keys:
        if key.subject == subject:
            assert found.figures[key.figure] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["shared"]


def test_a_failure_of_a_subject_is_told() -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such luck')"]
    with pytest.raises(SampleError, match=r"(?s)me: exit code 1.*no such luck"):
        sample._figures(command, "me")
    with pytest.raises(SampleError, match="exit code 0"):
        sample._figures([sys.executable, "-c", "print('nothing')"], "me")


def test_the_command_runs_what_it_is_told_and_writes_it_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--quick", "--only", "enqueue_many", "--folder", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "a quick run" in told
    data = json.loads((tmp_path / "latest.json").read_text())
    assert data["quick"] is True
    assert data["rounds"] == 1
    assert sorted(each["subject"] for each in data["samples"]) == ["async", "floor", "sync"]
    again = tmp_path / "again"
    assert main(["--show", str(tmp_path / "latest.json"), "--folder", str(again)]) == 0
    assert (again / "latest.md").read_text() == (tmp_path / "latest.md").read_text()


def test_what_fails_is_left_out_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def faked(case: Case, subject: str, *, number: int, **words: object) -> Sample:
        if subject == "sync":
            raise SampleError("sync broke")
        return Sample(case.name, subject, number, 0.0, 1.0, {"jobs/s": 5.0})

    monkeypatch.setattr(cli, "take", faked)
    assert main(["--quick", "--only", "enqueue_many", "--folder", str(tmp_path)]) == 1
    assert "sync broke" in capsys.readouterr().out
    data = json.loads((tmp_path / "latest.json").read_text())
    assert [each["subject"] for each in data["samples"]] == ["async", "floor"]


def test_who_stops_a_run_keeps_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def faked(case: Case, subject: str, *, number: int, **words: object) -> Sample:
        if (number, subject) == (1, "floor"):
            raise KeyboardInterrupt
        return Sample(case.name, subject, number, 0.0, 1.0, {"jobs/s": 5.0})

    monkeypatch.setattr(cli, "take", faked)
    words = ["--quick", "--only", "enqueue_many", "--rounds", "5", "--folder", str(tmp_path)]
    assert main(words) == 0
    assert "stopped" in capsys.readouterr().out
    data = json.loads((tmp_path / "latest.json").read_text())
    assert [each["subject"] for each in data["samples"]] == ["async", "sync", "floor", "sync"]
    assert data["rounds"] == 2


def test_nothing_is_written_when_all_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(case: Case, subject: str, **words: object) -> Sample:
        raise SampleError(f"{case.name}, {subject} broke {sorted(words)}")

    monkeypatch.setattr(cli, "take", failing)
    assert main(["--quick", "--only", "enqueue_many", "--folder", str(tmp_path)]) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["--only", "nonsense"], ["--rounds", "0"], ["--rounds", "x"]])
def test_wrong_words_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refusal:
        main(words)
    assert refusal.value.code == 2
    assert words[0] in capsys.readouterr().err


def test_a_case_is_chosen_by_its_name_or_with_all_that_begin_so() -> None:
    assert [case.name for case in cases_named("drain")] == ["drain"]
    assert [case.name for case in cases_named("postgres-drain")] == ["postgres-drain"]
    chosen = [case.name for case in cases_named("postgres")]
    assert chosen == [case.name for case in CASES if case.needs_postgres]
    for name in ("postgre", "post", ""):
        with pytest.raises(ValueError, match=f"^{name}$"):
            cases_named(name)


def test_the_args_are_the_same_for_all() -> None:
    assert list(emails(2)) == [
        Email("user@example.com", "Welcome", 0),
        Email("user@example.com", "Welcome", 1),
    ]
    assert json.loads(ARGS) == {"to": "user@example.com", "subject": "Welcome", "n": 123456}
    assert list(registry_of().kinds) == ["email"]
