"""The cases on Redis in small, on a server of their own, and what they rest on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from goncordia_bench.cases import CASES, case_named
from goncordia_bench.cases.redis.common import against_peers
from goncordia_bench.cli import main
from goncordia_bench.harness import environment as environments
from goncordia_bench.harness import redis as servers
from goncordia_bench.harness.board import Board
from goncordia_bench.harness.children import Worker, all_started, child, trickle, worker
from goncordia_bench.harness.environment import environment, pinned
from goncordia_bench.harness.interpreter import NoInterpreterError
from goncordia_bench.harness.model import Case, Key
from goncordia_bench.harness.peer import args, chunks
from goncordia_bench.harness.redis import Redis, own_redis
from goncordia_bench.harness.sample import take
from goncordia_bench.systems_redis import AFTER, FLOOR, OURS, PEERS, SYSTEMS, peer_versions
from goncordia_conformance.backends import needed
from goncordia_conformance.servers.process import NotHereError
from goncordia_conformance.servers.redis import find_redis

FULL = os.environ.get("GONCORDIA_FULL") == "1"
PLACE = "goncordia_bench.harness.child"
# The floor does the same in these as in the first.
ALIKE = {"redis-drain-file", "redis-processes", "redis-memory"}
# The peers have environments of their own, whose making takes too long.
QUICK = [
    (case, subject.name)
    for case in CASES
    if case.needs_redis
    for subject in case.subjects
    if FULL or (subject.name not in PEERS and not (subject.name == FLOOR and case.name in ALIKE))
]


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that may be emptied: nobody else's."""
    needed("redis", request.config, find_redis)
    with own_redis(tmp_path_factory.mktemp("redis")) as found:
        yield found


@pytest.fixture
def server(url: str) -> Iterator[Redis]:
    found = Redis(url)
    found.emptied()
    yield found
    found.close()


@pytest.mark.parametrize(("case", "subject"), QUICK, ids=lambda each: getattr(each, "name", each))
def test_every_subject_gives_the_figures_that_are_measured(
    case: Case, subject: str, tmp_path: Path, url: str
) -> None:
    found = take(case, subject, number=3, quick=True, scratch=tmp_path, redis_url=url)
    assert (found.case, found.subject, found.round) == (case.name, subject, 3)
    if case.name == "redis-killed":
        assert found.figures[f"{OURS} %"] == 100
        return
    keys = [measure.of for measure in case.measures]
    keys += [measure.against for measure in case.measures if measure.against is not None]
    for key in keys:
        # A worker that has nothing to do may take less time than can be counted.
        if key.subject == subject and key.figure != "idle %":
            assert found.figures[key.figure] > 0


def test_the_command_starts_a_server_and_shows_what_came_out(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    del url  # where there is no server, this is skipped
    words = ["--quick", "--brief", "--only", "redis-backlog", "--folder", str(tmp_path)]
    assert main(words) == 0, capsys.readouterr().out
    data = json.loads((tmp_path / "latest.json").read_text())
    assert data["machine"]["redis"].startswith(("Redis ", "Valkey "))
    assert data["machine"]["versions"]["taskiq"] == peer_versions()["taskiq"]
    assert data["brief"] is True
    text = (tmp_path / "latest.md").read_text()
    assert data["machine"]["redis"] in text
    assert "A brief run" in text
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["latest-redis.svg", "latest.json", "latest.md"]


def test_without_a_server_the_command_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> None:
        raise NotHereError("there is no program")

    monkeypatch.setattr(servers, "find_redis", missing)
    assert main(["--quick", "--only", "redis-backlog", "--folder", str(tmp_path)]) == 1
    assert "apt-get install redis-server" in capsys.readouterr().out.replace("\n", " ")


# ---------------------------------------------------------------- the server


def test_a_server_is_emptied_and_writes_a_file_where_asked(server: Redis) -> None:
    empty = server.memory()
    child(FLOOR, "install", server.url)
    child(FLOOR, "produce", server.url, "--jobs", "2000", "--at-once", "1000")
    assert server.memory() > empty + 2000 * 75
    assert server.script_seconds() > 0
    server.emptied(append=True)
    assert server.memory() < empty + 2000 * 75
    assert server.script_seconds() == 0
    assert server.setting("appendonly") == "yes"
    assert server.setting("appendfsync") == "everysec"
    server.emptied()
    assert server.setting("appendonly") == "no"


def test_other_databases_have_other_urls() -> None:
    assert Redis("redis://h:1/0").database(7) == "redis://h:1/7"


# ---------------------------------------------------------------- children


def started(board: Board, jobs: int) -> Worker:
    """A worker that has nothing but a board."""
    for n in range(jobs):
        board.note(n)
    return Worker(
        "nobody", subprocess.Popen([sys.executable, "-c", ""], text=True), board, board.path
    )


def test_a_board_tells_who_started_and_when(tmp_path: Path) -> None:
    board, same = Board(tmp_path / "board", 3), Board(tmp_path / "board", 3)
    before = time.monotonic_ns()
    board.note(2)
    starts = same.starts()
    assert list(starts) == [2]
    assert before <= starts[2] <= time.monotonic_ns()
    assert [same.has(n) for n in range(3)] == [False, False, True]


def test_a_worker_that_ended_is_told_with_its_last_words(tmp_path: Path) -> None:
    board = Board(tmp_path / "board", 2)
    gone = started(board, 1)
    assert all_started([gone], [0])
    gone.kill()
    gone._log = tmp_path / "log"
    gone._log.write_text("no such luck")
    with pytest.raises(AssertionError, match=r"(?s)nobody: exit code 0.*no such luck"):
        all_started([gone], [0, 1])
    with pytest.raises(AssertionError, match=r"(?s)floor: .*ModuleNotFoundError|ConnectionError"):
        child(FLOOR, "produce", "redis://127.0.0.1:1/0", "--jobs", "1")


def test_workers_note_what_they_start_until_they_are_killed(server: Redis, tmp_path: Path) -> None:
    child(FLOOR, "install", server.url)
    with (
        worker(FLOOR, server.url, tmp_path, 40) as first,
        worker(FLOOR, server.url, tmp_path, 40) as second,
        trickle(FLOOR, server.url, 40, 0, 0.01),
    ):
        first.go()
        second.go()
        assert first.board.path != second.board.path
        assert all_started([first, second], range(40))
        assert first.processor() > 0
        assert not all_started([first], range(40), within=0) or not second.board.starts()
    assert len({**first.board.starts(), **second.board.starts()}) == 40


def test_a_worker_ends_when_who_started_it_is_gone(server: Redis, tmp_path: Path) -> None:
    child(FLOOR, "install", server.url)
    words = [FLOOR, "work", server.url, "--jobs", "1", "--board", str(tmp_path / "board")]
    words[0] = SYSTEMS[FLOOR].place
    process = subprocess.Popen(
        [sys.executable, "-m", PLACE, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"ready\n"
    process.stdin.write(b"go\n")
    process.stdin.close()
    assert process.wait(30) == 1
    process.stdout.close()


def test_everybody_has_the_same_args() -> None:
    assert [job.n for job in args(5, 3)] == [5, 6, 7]
    text = json.dumps(next(args(123_456, 1))._asdict(), separators=(",", ":"))
    assert len(text) == 75
    assert [len(chunk) for chunk in chunks(args(0, 5), 2)] == [2, 2, 1]


# ---------------------------------------------------------------- systems and environments


def test_every_system_is_in_every_comparison() -> None:
    for case in CASES:
        names = {subject.name for subject in case.subjects}
        if case.needs_redis and len(names) > 1:
            assert {OURS, *PEERS} <= names, case.name


def test_only_who_loses_no_job_is_a_target() -> None:
    assert set(PEERS) - set(AFTER) == {"huey"}
    measures = against_peers("x", Key(OURS, "jobs/s"), at_least=4.0)
    judged = {
        measure.against.subject for measure in measures if measure.against and measure.at_least
    }
    assert judged == set(AFTER)
    assert any("huey (acknowledges before the work)" in measure.title for measure in measures)


def test_the_peers_versions_are_fixed() -> None:
    assert pinned("arq")["arq"] == peer_versions()["arq"]
    assert set(PEERS) <= set(peer_versions())
    for system in SYSTEMS.values():
        if system.requirements:
            assert all(pinned(system.requirements).values())


def test_this_environment_is_taken_where_it_will_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert environment("") == Path(sys.executable)
    monkeypatch.setattr(environments, "ROOT", tmp_path)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(NoInterpreterError, match="arq: uv is needed"):
        environment.__wrapped__("arq")


def test_the_page_of_redis_is_of_its_cases() -> None:
    assert case_named("redis-drain").needs == "redis"
    assert case_named("postgres-drain").needs == "postgres"
    assert case_named("drain").needs == ""
