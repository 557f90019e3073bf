"""Every page does what it says: its code runs, its links lead somewhere, its tables are complete.

Python blocks of a page run in order, in one namespace, one event loop and one empty folder;
``await`` needs no function around it. A block that calls ``asyncio.run`` is a program of its own.
What else a page tells this test stands in comments that readers do not see, before the block::

    <!-- hidden            the python block inside the comment runs too
    <!-- not run: why -->  the next block does not run
    <!-- saved as: x.py -->    it is saved in the page's folder under this name, and not run
    <!-- same as: a/b.py -->   it is this file of the repository, word for word
    <!-- prints -->        it is what the program or the block before it prints
    <!-- raises -->        it is the error of the block before it
    <!-- run -->           its lines after "$ " are commands, each followed by what it prints
    <!-- with: pg -->       from here on blocks need PostgreSQL, whose URL is DATABASE_URL, up to
                            another such comment; "pg pgbouncer": also that, at PGBOUNCER_URL;
                            "redis", "redis-cluster", "redis-sentinel": these, at REDIS_URL;
                            "nothing": no server any more

What a page has for a server is a test of its own, in a namespace and a folder of its own. There its
SQL blocks run, too, and print their rows; blocks of "redis" are commands, which print what
redis-cli would print into a pipe.

In what is printed or raised, "…" stands for anything within a line, alone in one for any lines.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import dataclasses
import gc
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from goncordia.driver import BaseDriver

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("docs/postgresql/*.md")),
    *sorted(ROOT.glob("docs/redis/*.md")),
    *sorted(ROOT.glob("docs/reference/*.md")),
    ROOT / "CONTRIBUTING.md",
]
EXAMPLES = sorted(ROOT.glob("docs/examples/*.py"))
SECONDS = 200


@dataclasses.dataclass
class Block:
    """One fenced block."""

    page: Path
    line: int
    language: str
    text: str
    hidden: bool
    servers: str
    notes: dict[str, str]

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, each with the notes that stand right before it."""
    notes: dict[str, str] = {}
    hidden = False
    servers = ""
    lines = enumerate(page.read_text().splitlines(), 1)
    for number, line in lines:
        if fence := re.match(r"```(\w*)$", line):
            inside: list[str] = []
            for _, text in lines:
                if text == "```":
                    break
                inside.append(text)
            yield Block(page, number, fence[1], "\n".join(inside) + "\n", hidden, servers, notes)
            notes = {}
        elif note := re.match(r"<!-- with: (.*) -->$", line):
            servers = "" if note[1] == "nothing" else note[1]
        elif note := re.match(r"<!-- ([\w ]+?)(?:: (.*?))? -->$", line):
            notes[note[1]] = note[2] or ""
        elif line == "<!-- hidden":
            hidden = True
        elif line == "-->":
            hidden = False
        elif line:
            notes = {}


def fits(expected: str, got: str) -> bool:
    """Whether this was said; "…" stands for anything within a line, alone in one for any lines."""
    pattern = ""
    for line in expected.strip().splitlines():
        if line == "…":
            pattern += r"(.*\n)*?"
        else:
            pattern += re.escape(line.rstrip()).replace("…", ".*?") + r" *\n"
    return re.fullmatch(pattern or r"\n", got.strip() + "\n") is not None


def flat(answer: Any) -> Iterator[str]:
    """An answer of Redis, a line for each of its values."""
    if isinstance(answer, list):
        for each in answer:
            yield from flat(each)
    else:
        yield "" if answer is None else str(answer)


def ran(words: list[str], folder: Path, env: dict[str, str] | None = None) -> str:
    """What a command prints that succeeds."""
    done = subprocess.run(
        words, cwd=folder, env=env, capture_output=True, check=False, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, f"{words[-1]}: {done.stderr}{done.stdout}"
    return done.stdout


class Reader:
    """Runs the blocks of one page, as a reader would who types them in.

    Args:
        folder: where programs run and files are saved.
        runner: the loop.
    """

    def __init__(self, folder: Path, runner: asyncio.Runner) -> None:
        self.folder = folder
        self.runner = runner
        self.module = types.ModuleType("a_page")
        self.printed = ""
        self.raised: Exception | None = None

    def read(self, block: Block) -> None:
        """Do what the page says about this block."""
        if "raises" in block.notes:
            error, self.raised = self.raised, None
            said = f"{type(error).__name__}: {error}"
            assert fits(block.text, said), f"{block}: it raised {said}"
            return
        if self.raised is not None:
            raise self.raised
        if "prints" in block.notes:
            assert fits(block.text, self.printed), f"{block}: it printed {self.printed}"
        if name := block.notes.get("same as"):
            assert (ROOT / name).read_text() == block.text, f"{block}: {name} is not the same"
        if name := block.notes.get("saved as"):
            (self.folder / name).write_text(block.text)
            return
        if "run" in block.notes:
            self._commands(block)
        if block.language == "python" and "not run" not in block.notes:
            self._run(block)
        if block.language == "sql" and block.servers and "not run" not in block.notes:
            self.printed = self._query(block.text)
        if block.language == "redis" and block.servers and "not run" not in block.notes:
            self.printed = self._ask(block.text)

    def _query(self, statements: str) -> str:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            cursor = connection.execute(statements.encode())
            rows = cursor.fetchall() if cursor.description else []
        return "\n".join(" | ".join(map(str, row)) for row in rows)

    def _ask(self, commands: str) -> str:
        with redis.Redis.from_url(
            os.environ["REDIS_URL"], protocol=2, decode_responses=True, encoding_errors="replace"
        ) as client:
            answers: list[str] = []
            for command in commands.splitlines():
                connection = client.connection_pool.get_connection()
                try:
                    connection.send_command(*shlex.split(command))
                    answers += flat(connection.read_response())
                finally:
                    client.connection_pool.release(connection)
        return "\n".join(answers)

    def _run(self, block: Block) -> None:
        if "asyncio.run(" in block.text or "__main__" in block.text:
            (self.folder / "program.py").write_text(block.text)
            self.printed = self._command([sys.executable, "-W", "error", "program.py"])
            return
        code = compile(
            "\n" * block.line + block.text,
            str(block.page),
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        )
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            try:
                self.runner.run(self._evaluate(code))
            except Exception as error:  # noqa: BLE001  # the page says which, or it is raised again
                error.add_note(f"in {block}")
                self.raised = error
        self.printed = printed.getvalue()

    async def _evaluate(self, code: types.CodeType) -> None:
        answer = eval(code, self.module.__dict__)
        if code.co_flags & inspect.CO_COROUTINE:
            await answer

    def _commands(self, block: Block) -> None:
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            got = self._command(["sh", "-c", command])
            assert fits(expected, got), f"{block}: {command} printed {got}"

    def _command(self, words: list[str]) -> str:
        env = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": ".",
            "COLUMNS": "120",
            "NO_COLOR": "1",
        }
        return ran(words, self.folder, env)

    async def close(self) -> None:
        """Close the drivers that a page left open, as the end of a program would."""
        for value in self.module.__dict__.values():
            if isinstance(value, BaseDriver):
                await value.aclose()


def titled(page: Path) -> str:
    return str(page.relative_to(ROOT))


PARTS = [
    pytest.param(page, servers, id=" with ".join(filter(None, (titled(page), servers))))
    for page in PAGES
    for servers in sorted({block.servers for block in blocks(page)})
]


@pytest.mark.timeout(600)  # a page of commands starts many processes, on a machine that may be busy
@pytest.mark.parametrize(("page", "servers"), PARTS)
def test_the_code_of_a_page_does_what_the_page_says(
    page: Path,
    servers: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    provide: Callable[[str], None],
) -> None:
    provide(servers)
    monkeypatch.chdir(tmp_path)
    with asyncio.Runner() as runner:
        reader = Reader(tmp_path, runner)
        monkeypatch.setitem(sys.modules, reader.module.__name__, reader.module)
        try:
            for block in blocks(page):
                if block.servers == servers:
                    reader.read(block)
            if reader.raised is not None:
                raise reader.raised
        finally:
            runner.run(reader.close())
    reader.module.__dict__.clear()
    gc.collect()  # what the page left open is told here, and not in the midst of another test


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_runs(example: Path, tmp_path: Path, provide: Callable[[str], None]) -> None:
    for variable, server in (("DATABASE_URL", "pg"), ("REDIS_URL", "redis")):
        if variable in example.read_text():
            provide(server)
    words = [sys.executable, "-W", "error", str(example)]
    ran(words, tmp_path)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=titled)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: {link}"


def parameters(function: Any) -> list[str]:
    """The names of a function's parameters."""
    return [name for name in inspect.signature(function).parameters if name != "self"]


def public(cls: type) -> list[str]:
    """The names of a class's public methods."""
    return [name for name, _ in inspect.getmembers(cls, callable) if not name.startswith("_")]


def mentioned(page: str, names: list[str]) -> list[str]:
    """Those of the names that the page does not have in code type."""
    text = (ROOT / "docs" / page).read_text()
    words = set(re.findall(r"\w+", " ".join(re.findall(r"```.*?```|`[^`]+`", text, re.DOTALL))))
    return [name for name in names if name not in words]


def fixtures() -> list[str]:
    """The fixtures that every pytest run has."""
    from goncordia.gontest import plugin

    return [name for name in plugin.__all__ if name.startswith("goncordia_")]


def test_no_error_no_option_no_setting_is_left_out() -> None:
    import goncordia
    from goncordia import driver, errors, gontest, logs, periodic
    from goncordia.options import InsertOptions
    from goncordia.pool import WorkerPool
    from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver
    from goncordia_driver_redis import RedisDriver

    assert mentioned("errors.md", [name for name in errors.__all__ if name != "Outcome"]) == []
    assert mentioned("options.md", list(InsertOptions.__annotations__)) == []
    assert mentioned("workers.md", parameters(WorkerPool)) == []
    assert mentioned("contract.md", list(driver.Capabilities.__struct_fields__)) == []
    assert mentioned("contract.md", public(driver.BaseExecutor)) == []
    assert mentioned("contract.md", public(driver.BaseDriver)) == []
    assert mentioned("index.md", sorted(goncordia.__all__)) == []
    for pg_driver in (AsyncpgDriver, PsycopgDriver):
        assert mentioned("postgresql.md", parameters(pg_driver)) == []
    assert mentioned("redis.md", parameters(RedisDriver)) == []
    assert mentioned("cron.md", periodic.__all__) == []
    assert mentioned("cron.md", parameters(periodic.CronScheduler)) == []
    assert mentioned("cron.md", parameters(periodic.PeriodicJob)) == []
    assert mentioned("testing.md", [*gontest.__all__, *fixtures()]) == []
    assert mentioned("logging.md", logs.__all__) == []


def test_every_public_name_is_in_the_reference() -> None:
    import goncordia
    import goncordia_driver_pg
    import goncordia_driver_redis
    import goncordia_driver_sqlite
    from goncordia import client, driver, errors, gontest, logs, periodic

    entries = "".join(page.read_text() for page in ROOT.glob("docs/reference/*.md"))
    told = {name.rpartition(".")[2] for name in re.findall(r"^::: (\S+)$", entries, re.MULTILINE)}
    for module in (
        goncordia,
        client,
        driver,
        errors,
        gontest,
        logs,
        periodic,
        goncordia_driver_pg,
        goncordia_driver_redis,
        goncordia_driver_sqlite,
    ):
        assert set(module.__all__) - told == set(), module.__name__
    assert set(fixtures()) - told == set()
