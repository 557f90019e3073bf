"""``goncordia`` itself, ``migrate`` and ``worker``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from goncordia import ConfigurationError, DriverUnavailableError, MigrationRequiredError
from goncordia.cli import main
from goncordia.cli.backend import run as run_loop
from goncordia.cli.loading import load_registry
from goncordia.memory import MemoryDriver
from goncordia.registry import Registry

from .conftest import APP, Run

# ---------------------------------------------------------------- the command itself


def test_the_version(run: Run) -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (
        0,
        f"goncordia-core {version('goncordia-core')}\n",
    )


def test_no_words_and_wrong_words(run: Run) -> None:
    bare = run()
    assert bare.exit_code == 2
    assert "migrate" in bare.stdout + bare.stderr
    assert run("migrat").exit_code == 2
    assert run("--help").exit_code == 0


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_its_extra(missing: str) -> None:
    script = f"""
import sys
sys.modules[{missing!r}] = None
from goncordia.cli import main
main()
"""
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    told = f"goncordia: the command line needs {missing}: pip install 'goncordia-core[cli]'\n"
    assert (answer.returncode, answer.stdout, answer.stderr) == (2, "", told)


def test_as_a_module(run: Run) -> None:
    command = [sys.executable, "-m", "goncordia", "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, run("--version").stdout, "")


def test_as_a_module_without_its_extra(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('no typer', name='typer')\n")
    answer = subprocess.run(
        [sys.executable, "-m", "goncordia", "--version"],
        cwd=tmp_path,  # comes before what is installed
        capture_output=True,
        text=True,
        check=False,
    )
    told = "goncordia: the command line needs typer: pip install 'goncordia-core[cli]'\n"
    assert (answer.returncode, answer.stdout, answer.stderr) == (2, "", told)


def test_main_runs_the_app(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["goncordia", "migrate", "--url", "memory://"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 0
    assert capsys.readouterr().out == "nothing to do: the schema is up to date\n"


def into_a_full_disk(here: Path, *words: str, **env: str) -> tuple[int, str]:
    """The exit code, and what is on stderr."""
    with open("/dev/full", "w") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "goncordia", *words],
            cwd=here,
            env=os.environ | {"GONCORDIA_URL": "memory://"} | env,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    return answer.returncode, answer.stderr


FULL = "goncordia: the output cannot be written: No space left on device\n"
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device is always full")


@needs_full
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--version"], ["--help"], ["jobs", "list"], ["doctor"]])
def test_output_that_cannot_be_written_is_told(
    here: Path, words: list[str], unbuffered: str
) -> None:
    assert into_a_full_disk(here, *words, PYTHONUNBUFFERED=unbuffered) == (1, FULL)


@needs_full
def test_nor_can_that_of_the_users_module_be_written(here: Path) -> None:
    (here / "prints_app.py").write_text("print('mine')\n")
    code, told = into_a_full_disk(here, "worker", "prints_app:registry", PYTHONUNBUFFERED="")
    assert code == 2  # what went wrong first
    first, last = told.splitlines(keepends=True)
    assert first.startswith("goncordia: registry: ")
    assert last == FULL


@needs_full
def test_an_error_that_is_not_the_outputs_is_shown_as_it_is(here: Path) -> None:
    raises = "@asynccontextmanager\nasync def full():\n    raise OSError(28, 'mine')\n    yield\n"
    registry = APP.replace("Registry()", "Registry(lifespan=full)")
    (here / "full_app.py").write_text(
        f"from contextlib import asynccontextmanager\n{raises}{registry}"
    )
    answer = subprocess.run(
        [sys.executable, "-m", "goncordia", "worker", "full_app:registry", "--url", "memory://"],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert answer.stderr.endswith("OSError: [Errno 28] mine\n")


# ---------------------------------------------------------------- migrate


def test_migrate_prints_what_was_done(
    run: Run, driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []

    async def migrate() -> list[str]:
        return ["created goncordia_jobs", "created goncordia_records"]

    async def aclose() -> None:
        closed.append(True)

    monkeypatch.setattr(driver, "migrate", migrate)
    monkeypatch.setattr(driver, "aclose", aclose)
    result = run("migrate")
    assert result.exit_code == 0
    assert result.stdout == "created goncordia_jobs\ncreated goncordia_records\n"
    assert closed == [True]


def test_migrate_can_print_only(
    run: Run, driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = run("migrate", "--print")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert nothing.stderr == "goncordia: this backend has no schema\n"
    monkeypatch.setattr(driver, "migration_script", lambda: "CREATE TABLE t (id int);")
    assert run("migrate", "--print").stdout == "CREATE TABLE t (id int);\n"


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (DriverUnavailableError("cannot connect: refused"), 1, "cannot connect: refused"),
        (ConfigurationError("path: '/x' cannot be read"), 2, "path: '/x' cannot be read"),
    ],
)
def test_errors_are_one_line(
    run: Run,
    driver: MemoryDriver,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    code: int,
    told: str,
) -> None:
    async def migrate() -> list[str]:
        error.add_note("look at the log")
        raise error

    monkeypatch.setattr(driver, "migrate", migrate)
    result = run("migrate")
    assert result.exit_code == code
    assert result.stderr == f"goncordia: {told}\n  look at the log\n"


@pytest.mark.parametrize("hint", ["", "; run `goncordia migrate`"])
def test_an_old_schema_says_what_to_run(
    run: Run, driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch, hint: str
) -> None:
    async def verify() -> None:
        raise MigrationRequiredError(f"the schema is at version 1{hint}")

    monkeypatch.setattr(driver, "verify", verify)
    result = run("jobs", "list")
    assert result.exit_code == 1
    told = hint or " (run: goncordia migrate)"
    assert result.stderr == f"goncordia: the schema is at version 1{told}\n"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("", "url: none is given; use --url, set GONCORDIA_URL, or write url into [tool.gonc"),
        (
            "jobs.db",
            "url: 'jobs.db' does not begin with a scheme and '://'; a URL looks like 'sqlite:///jobs.db'",
        ),
        ("memory://x", "url: 'memory://x' is not 'memory://', which takes nothing more"),
        ("mongodb://h", "url: no installed driver claims the scheme 'mongodb'; install goncordia-"),
    ],
)
@pytest.mark.parametrize("words", [["migrate"], ["jobs", "list"], ["worker", "good_app:registry"]])
@pytest.mark.usefixtures("here")
def test_wrong_urls(run: Run, url: str, told: str, words: list[str]) -> None:
    result = run(*words, GONCORDIA_URL=url)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"goncordia: {told}")


# ---------------------------------------------------------------- worker


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("path", ["good_app:registry", "good_app:Box.inner"])
def test_a_registry_is_loaded_from_here(path: str) -> None:
    assert isinstance(load_registry(path), Registry)


@pytest.mark.usefixtures("here", "driver")
@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("good_app", "'good_app' is not like 'app.jobs:registry'"),
        (":registry", "':registry' is not like 'app.jobs:registry'"),
        ("./good_app.py:r", "'./good_app.py:r' is not like 'app.jobs:registry'"),
        ("good_app:", "'good_app:' is not like 'app.jobs:registry'"),
        ("absent_app:r", "'absent_app:r': there is no module 'absent_app' here or on PYTHONPATH"),
        ("good_app.sub:r", "'good_app.sub:r': there is no module 'good_app.sub' here or on "),
        ("good_app:reg", "'good_app:reg': good_app has no 'reg'; there is 'registry'"),
        ("raises_app:r", "'raises_app:r': importing raises_app failed: KeyError: 'SECRET' ("),
        ("ends_app:r", "'ends_app:r': importing ends_app failed: SystemExit: 0 ("),
        ("syntax_app:r", "'syntax_app:r': importing syntax_app failed: SyntaxError: "),
        ("needs_app:r", "'needs_app:r': importing needs_app failed: No module named 'no_such_lib"),
        ("good_app:other", "'good_app:other' is of type int, not a Registry; there is 'registry'"),
    ],
)
def test_a_path_that_does_not_lead_to_a_registry(run: Run, path: str, told: str) -> None:
    result = run("worker", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"goncordia: registry: {told}")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.usefixtures("here", "driver")
def test_an_error_in_a_module_names_the_line(run: Run) -> None:
    result = run("worker", "raises_app:r")
    assert result.stderr.rstrip().endswith("raises_app.py, line 2)")


@pytest.mark.usefixtures("driver")
def test_a_wrong_registration_says_it_itself(run: Run, here: Path) -> None:
    result = run("worker", "twice_app:registry")
    assert result.exit_code == 2
    what, where = result.stderr.splitlines()
    assert "mail" in what
    assert "importing" not in what
    last = len((here / "twice_app.py").read_text().splitlines())
    assert where == f"  in twice_app ({here / 'twice_app.py'}, line {last})"


@pytest.mark.usefixtures("here")
def test_the_pool_gets_what_was_given_and_no_more(
    run: Run, driver: MemoryDriver, pools: list[tuple[Any, Any, dict[str, Any]]]
) -> None:
    assert run("worker", "good_app:registry").exit_code == 0
    assert (
        run(
            "worker",
            "good_app:registry",
            "-q",
            "b",
            "-q",
            "a",
            "-c",
            "3",
            "--shutdown-timeout",
            "1.5",
        ).exit_code
        == 0
    )
    assert [(pool[0], pool[2]) for pool in pools] == [
        (driver, {"queues": ["default"]}),
        (driver, {"queues": ["b", "a"], "concurrency": 3, "shutdown_timeout": 1.5}),
    ]


@pytest.mark.usefixtures("here", "pools", "driver")
def test_a_queue_without_jobs_is_only_a_warning(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    words = ["-q", "default", "-q", "later", "-q", "later"]
    assert run("worker", "good_app:registry", *words).exit_code == 0
    told = [record.getMessage() for record in caplog.records if record.name == "goncordia.cli"]
    assert told == ["queue 'later' has no jobs yet; there are: default"]


@pytest.mark.usefixtures("here", "driver")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-c", "0"], "concurrency: 0 is not a whole number from 1"),
        (["-q", ""], "''"),
        (["--shutdown-timeout", "-1"], "shutdown_timeout: -1.0 is not a number of seconds"),
    ],
)
def test_wrong_settings_of_the_pool(run: Run, words: list[str], told: str) -> None:
    result = run("worker", "good_app:registry", *words)
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_uvloop_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def loop() -> str:
        import asyncio

        return type(asyncio.get_running_loop()).__module__

    if os.name != "nt":
        assert run_loop(loop()) == "uvloop"
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert run_loop(loop()).startswith("asyncio")


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_a_real_worker_ends_on_a_signal(here: Path) -> None:
    command = Path(sys.executable).with_name("goncordia")
    env = os.environ | {"GONCORDIA_URL": "memory://"}
    process = subprocess.Popen(
        # One that waited for this long would not end before the test does.
        [command, "worker", "good_app:registry", "--shutdown-timeout", "1000"],
        cwd=here,
        env=env,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if " works default " in line:
                break
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
        assert process.wait() == 0
        assert "has stopped" in rest
        assert "Traceback" not in rest
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
