"""What log records say of jobs, and how much is logged of what."""

from __future__ import annotations

import asyncio
import json
import logging
import logging.handlers
import queue
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from goncordia import (
    Client,
    ConfigurationError,
    Discard,
    DriverUnavailableError,
    FixedRetry,
    Job,
    Registry,
    Snooze,
    SyncJob,
    WorkerPool,
)
from goncordia.driver import Claim, FetchRequest, JobRow, Mark, QueueFetch
from goncordia.engine.logs import Failures
from goncordia.gontest import MockClock, require_work
from goncordia.ids import new_session_id
from goncordia.logs import JobContext, add_job_context, fields_of, job_fields
from goncordia.memory import MemoryDriver

log = logging.getLogger("shop")


@dataclass
class SendEmail:
    kind: ClassVar[str] = "send_email"
    to: str


class Kept(logging.Handler):
    """Keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def kept() -> Iterator[Kept]:
    """A handler of the application's logger, with a context."""
    handler = Kept()
    handler.addFilter(JobContext())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)


def fields(record: logging.LogRecord) -> tuple[Any, ...]:
    here = record.__dict__
    return (here["job_id"], here["job_kind"], here["job_queue"], here["job_attempt"])


async def helper(job: Job[Any]) -> None:
    log.info("in a task of its own")


async def test_every_record_of_an_async_worker_knows_its_job(kept: Kept) -> None:
    async def send(job: Job[SendEmail]) -> None:
        log.info("sending")
        await asyncio.create_task(helper(job))
        await asyncio.to_thread(log.info, "in a thread")

    log.info("before")
    result = await require_work(send, SendEmail("ann"), queue="mail")
    log.info("after")
    before, *inside, after = kept.records
    expected = (str(result.info.id), "send_email", "mail", 1)
    assert [fields(record) for record in inside] == [expected] * 3
    for outside in (before, after):
        assert fields(outside) == (None, None, None, None)
        assert outside.__dict__["job"] == "-"
    assert inside[0].__dict__["job"] == f"send_email {result.info.id} attempt 1"


async def test_and_of_one_in_a_thread(kept: Kept) -> None:
    def send(job: SyncJob[SendEmail]) -> None:
        log.info("sending")

    result = await require_work(send, SendEmail("ann"))
    (record,) = kept.records
    assert fields(record) == (str(result.info.id), "send_email", "default", 1)


async def test_jobs_at_once_are_kept_apart(kept: Kept) -> None:
    registry = Registry()
    meeting = asyncio.Barrier(2)

    @registry.worker(SendEmail)
    async def send(job: Job[SendEmail]) -> None:
        await meeting.wait()
        log.info("%s", job.id)

    driver = MemoryDriver()
    await Client(driver).enqueue_many([SendEmail("ann"), SendEmail("bob")])
    async with WorkerPool(driver, registry) as pool:
        await pool.drain()
    assert len(kept.records) == 2
    for record in kept.records:
        assert record.__dict__["job_id"] == record.getMessage()


async def test_what_a_record_says_itself_stays(kept: Kept) -> None:
    async def send(job: Job[SendEmail]) -> None:
        log.info("of another", extra={"job_id": "x", "job": "mine"})

    await require_work(send, SendEmail("ann"))
    (record,) = kept.records
    assert (record.__dict__["job_id"], record.__dict__["job"]) == ("x", "mine")


async def test_a_queue_handler_gets_the_fields_where_the_job_runs() -> None:
    records: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    handler = logging.handlers.QueueHandler(records)
    handler.addFilter(JobContext())
    log.addHandler(handler)
    log.setLevel(logging.INFO)

    def send(job: SyncJob[SendEmail]) -> None:
        log.info("sending")

    try:
        result = await require_work(send, SendEmail("ann"))
    finally:
        log.removeHandler(handler)
    assert records.get_nowait().__dict__["job_id"] == str(result.info.id)


async def test_the_fields_for_who_logs_otherwise() -> None:
    seen: list[dict[str, Any]] = []

    async def send(job: Job[SendEmail]) -> None:
        seen.append(job_fields())
        assert fields_of(job) == job_fields()

    result = await require_work(send, SendEmail("ann"))
    assert seen == [fields_of(result.info)]
    assert job_fields() == {}


def test_one_line_for_all_handlers_of_a_logger() -> None:
    logger = logging.Logger("mine")
    with pytest.raises(ConfigurationError, match="logger: 'mine' has no handlers; configure"):
        add_job_context(logger)
    first, second = Kept(), Kept()
    logger.addHandler(first)
    add_job_context(logger)
    logger.addHandler(second)
    add_job_context(logger)
    assert [len(handler.filters) for handler in (first, second)] == [1, 1]
    not_one: Any = "root"
    with pytest.raises(ConfigurationError, match=r"logger: 'root' is not a logging\.Logger"):
        add_job_context(not_one)


def run(program: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, check=True, text=True
    )
    return done.stdout, done.stderr


def test_nothing_is_printed_where_nothing_is_configured() -> None:
    program = """
import logging, goncordia
logging.getLogger("goncordia.engine").error("x")
assert logging.getLogger("goncordia").level == logging.NOTSET
"""
    assert run(program) == ("", "")


def test_the_root_logger_in_one_line() -> None:
    program = """
import logging
from goncordia.logs import add_job_context
logging.basicConfig(format="%(levelname)s %(job)s: %(message)s")
add_job_context()
logging.getLogger("goncordia.engine").error("x")
"""
    assert run(program) == ("", "ERROR -: x\n")


def test_by_dictionary() -> None:
    config = {
        "version": 1,
        "filters": {"job": {"()": "goncordia.logs.JobContext"}},
        "handlers": {"out": {"class": "logging.StreamHandler", "filters": ["job"]}},
        "root": {"handlers": ["out"]},
    }
    program = f"""
import json, logging.config
logging.config.dictConfig(json.loads('''{json.dumps(config)}'''))
(handler,) = logging.getLogger().handlers
handler.setFormatter(logging.Formatter("%(job)s %(message)s"))
logging.error("x")
"""
    assert run(program) == ("", "- x\n")


# ---------------------------------------------------------------- what the engine logs


def claim_of(row: JobRow) -> Claim:
    assert row.claim is not None
    return row.claim


async def worked(how: BaseException | None, **options: Any) -> None:
    registry = Registry()

    @registry.worker(SendEmail, retry_policy=FixedRetry(3600))
    async def send(job: Job[SendEmail]) -> None:
        if how is not None:
            raise how

    driver = MemoryDriver(MockClock())
    await Client(driver).enqueue(SendEmail("secret"), **options)
    async with WorkerPool(driver, registry) as pool:
        await pool.drain()


def of_jobs(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "goncordia.jobs"]


async def test_a_failed_attempt_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    await worked(LookupError("no such user"))
    (record,) = of_jobs(caplog)
    assert record.levelno == logging.WARNING
    assert record.getMessage().endswith(
        "(send_email): attempt 1 failed, to be retried: LookupError: no such user"
    )
    assert fields(record)[1:] == ("send_email", "default", 1)
    assert record.exc_info is None


@pytest.mark.parametrize("how", [LookupError("no such user"), Discard("no such user")])
async def test_the_last_one_is_an_error_with_its_traceback(
    how: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    await worked(how, max_attempts=1)
    (record,) = of_jobs(caplog)
    assert record.levelno == logging.ERROR
    assert "attempt 1 failed, the job is discarded: " in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[1] is how
    text = logging.Formatter().format(record)
    assert "Traceback (most recent call last):" in text
    assert "in send\n" in text
    assert record.lineno > 0


@pytest.mark.parametrize("how", [None, Snooze(60)])
async def test_what_is_everyday_is_not_logged(
    how: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    await worked(how)
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
    assert of_jobs(caplog) == []


async def test_starts_and_ends_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="goncordia.jobs")
    await worked(None)
    first, second = of_jobs(caplog)
    assert first.getMessage().endswith("(send_email) starts")
    assert second.getMessage().endswith("(send_email) ended after 0.000 s: complete")
    assert fields(first) == fields(second)
    assert fields(first)[1:] == ("send_email", "default", 1)


@pytest.mark.parametrize(
    ("attempts", "level", "to"), [(1, "ERROR", "discard"), (2, "WARNING", "retry")]
)
async def test_a_dead_workers_job_is_loud_and_its_end_louder(
    attempts: int, level: str, to: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = MockClock()
    driver = MemoryDriver(clock)
    await Client(driver).enqueue(SendEmail("ann"), max_attempts=attempts)
    executor, dead = driver.executor(), new_session_id()
    await executor.session_open(dead, "worker-1", 30)
    fetched = await executor.fetch(
        FetchRequest(dead, 1, 1, (QueueFetch("default", 1, None),), "worker-1")
    )
    await executor.mark_many([Mark(claim_of(fetched.jobs[0]), started=True)])
    registry = Registry()

    @registry.worker(SendEmail, retry_policy=FixedRetry(3600))
    async def send(job: Job[SendEmail]) -> None: ...

    async with WorkerPool(driver, registry):
        await clock.advance(120)
    (record,) = [each for each in caplog.records if "taken back" in each.getMessage()]
    assert record.levelname == level
    assert record.getMessage().endswith(f"attempt 1, was taken back from worker-1: {to}")
    assert fields(record)[1:] == ("send_email", "default", 1)


async def test_args_are_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await worked(LookupError("no"))
    await worked(LookupError("no"), max_attempts=1)
    assert "secret" not in caplog.text


async def test_a_text_that_raises_and_a_filter_that_raises_do_no_harm(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise asyncio.CancelledError

    def broken(_record: logging.LogRecord) -> bool:
        raise LookupError

    await worked(MuteError(), max_attempts=1)
    (record,) = of_jobs(caplog)
    assert "its text raised CancelledError" in record.getMessage()
    logging.getLogger("goncordia.jobs").addFilter(broken)
    try:
        await worked(LookupError("no"), max_attempts=1)
    finally:
        logging.getLogger("goncordia.jobs").removeFilter(broken)


def test_the_third_failure_in_a_row_is_loud_and_so_is_the_end_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    failures = Failures("a beat")
    failures.failed(DriverUnavailableError("away"))
    failures.succeeded()
    for _ in range(4):
        failures.failed(DriverUnavailableError("away"))
    failures.succeeded()
    failures.succeeded()
    assert [record.levelname for record in caplog.records] == [
        "DEBUG",
        "DEBUG",
        "DEBUG",
        "WARNING",
        "DEBUG",
        "INFO",
    ]
    assert caplog.messages[3] == (
        "a beat failed 3 times in a row, repeating: DriverUnavailableError: away"
    )
    assert caplog.messages[5] == "a beat works again after 4 failures"
