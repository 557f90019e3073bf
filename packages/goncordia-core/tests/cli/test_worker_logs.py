"""What ``goncordia worker`` logs: the job in the lines that are written inside of one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from goncordia import SyncClient, WorkerPool
from goncordia.cli import worker as worker_module
from goncordia.logs import JobContext
from goncordia.memory import MemoryTx

from .conftest import APP, Run
from .test_jobs import Mail

Work = Callable[[str], tuple[str, list[logging.Handler]]]

LOGS = """
import logging
log = logging.getLogger("shop")
log.info("imported")
"""
LOGGING_APP = (LOGS + APP).replace('print("to", job.args.to)', 'log.info("connecting")')


class Draining(WorkerPool):
    """A pool that ends when there is nothing to do, and needs no signal."""

    async def run(self) -> None:
        async with self:
            await self.drain()


@pytest.fixture
def work(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    """Runs a worker as a new process would, without handlers; gives stderr and the handlers."""
    root = logging.getLogger()
    monkeypatch.setattr(worker_module, "WorkerPool", Draining)
    level = root.level

    def work(source: str) -> tuple[str, list[logging.Handler]]:
        (here / "working_app.py").write_text(source)
        with monkeypatch.context() as only_here:  # pytest takes its own handlers away after this
            only_here.setattr(root, "handlers", [])
            result = run("worker", "working_app:registry")
            handlers = root.handlers
        assert result.exit_code == 0
        return result.stderr, handlers

    yield work
    root.setLevel(level)


def said(stderr: str, logger: str) -> list[str]:
    """What this logger said, level first."""
    lines = [line.split(" ", 2)[2] for line in stderr.splitlines()]
    return [line for line in lines if line.split()[1] == f"{logger}:"]


def test_a_handlers_lines_end_with_their_job(work: Work, client: SyncClient[MemoryTx]) -> None:
    handle = client.enqueue(Mail("a"))
    stderr, _ = work(LOGGING_APP)
    assert said(stderr, "shop") == [
        "INFO shop: imported",
        f"INFO shop: connecting [mail {handle.id} attempt 1]",
    ]


def test_our_own_lines_name_the_job_once(work: Work, client: SyncClient[MemoryTx]) -> None:
    handle = client.enqueue(Mail("a"), max_attempts=1)
    stderr, _ = work(APP.replace("print(", "raise ValueError("))
    (line,) = said(stderr.partition("Traceback")[0], "goncordia.jobs")
    assert line.count(str(handle.id)) == 1


def test_handlers_of_the_application_get_the_context(work: Work) -> None:
    own = "import logging\nlogging.getLogger().handlers[:] = [logging.NullHandler()]\n"
    _, (handler,) = work(own + APP)
    assert isinstance(handler, logging.NullHandler)
    assert [type(each) for each in handler.filters] == [JobContext]


def test_an_application_that_wants_no_handlers(work: Work) -> None:
    _, handlers = work("import logging\nlogging.getLogger().handlers.clear()\n" + APP)
    assert handlers == []
