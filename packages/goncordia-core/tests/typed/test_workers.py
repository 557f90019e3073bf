"""Checked by mypy and pyright, not run.

Each ``# type: ignore[code]`` is an error that both must find.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, assert_type

import msgspec

from goncordia import (
    CallNext,
    Client,
    FixedRetry,
    Job,
    NoRetry,
    ProcessJob,
    Registry,
    SyncClient,
    SyncJob,
    by_error,
    current_job,
)
from goncordia.job import BaseJob


@dataclass
class SendEmail:
    kind: ClassVar[str] = "send_email"
    to: str


class Thumb(msgspec.Struct, frozen=True):
    kind: ClassVar[str] = "thumb"
    path: str


@dataclass
class AppState:
    db: str


@contextlib.asynccontextmanager
async def lifespan() -> AsyncGenerator[AppState]:
    yield AppState("x")


async def logged(job: Job[Any, Any], call_next: CallNext) -> object:
    return await call_next(job)


def not_async(job: Job[Any, Any], call_next: CallNext) -> object:
    return 1


def registries() -> None:
    plain = Registry()
    assert_type(plain, Registry[object])
    module = Registry[AppState]()
    app = Registry(lifespan=lifespan, middleware=[logged])
    assert_type(app, Registry[AppState])
    app.include(plain)
    app.include(module)
    plain.include(module)  # type: ignore[arg-type]
    Registry(middleware=[not_async])  # type: ignore[list-item]
    Registry(lifespan=5)  # type: ignore[call-overload]


def workers(app: Registry[AppState], plain: Registry[object]) -> None:
    @app.worker(SendEmail, max_attempts=5, timeout=30)
    async def send_email(job: Job[SendEmail]) -> None:
        assert_type(job.args, SendEmail)
        assert_type(job.args.to, str)
        assert_type(job.app, object)
        job.app.db  # type: ignore[attr-defined]  # noqa: B018

    @app.worker(SendEmail, timeout=timedelta(seconds=3), retry_policy=lambda attempt: 2 * attempt)
    async def with_app(job: Job[SendEmail, AppState]) -> int:
        assert_type(job.app.db, str)
        assert_type(job.client, Client[Any])
        assert_type(job.load_checkpoint(dict[str, int]), dict[str, int] | None)
        await job.checkpoint({"page": 1})
        await job.complete_tx(object(), output=3)
        return 1

    @app.worker(Thumb, execution="thread", retry_policy=by_error({OSError: FixedRetry(3)}))
    def thumb(job: SyncJob[Thumb, AppState]) -> dict[str, int]:
        assert_type(job.client, SyncClient[Any])
        job.checkpoint(1)
        return {}

    @app.worker(Thumb, middleware=[logged], retry_policy=NoRetry(), payload_version=2)
    def thumb_auto(job: SyncJob[Thumb]) -> int:
        assert_type(job.args.path, str)
        return 1

    @app.worker(SendEmail)
    async def any_job(job: BaseJob[Any, Any]) -> None: ...

    @app.worker(SendEmail)  # type: ignore[arg-type]
    async def wrong_args(job: Job[Thumb]) -> None: ...

    @plain.worker(SendEmail)  # type: ignore[arg-type]
    async def wrong_app(job: Job[SendEmail, AppState]) -> None: ...

    @app.worker(SendEmail)  # type: ignore[arg-type]
    async def no_job() -> None: ...

    @app.worker(SendEmail)  # type: ignore[arg-type]
    async def bare_args(args: SendEmail) -> None: ...

    @app.worker(SendEmail)  # type: ignore[arg-type]
    def plain_with_job(job: Job[SendEmail]) -> int:
        return 1

    @app.worker(int)  # type: ignore[type-var]
    async def not_args(job: Any) -> None: ...

    @app.worker(SendEmail, max_attempts="5")  # type: ignore[arg-type]
    async def bad_option(job: Job[SendEmail]) -> None: ...

    @app.worker(SendEmail, max_attempt=5)  # type: ignore[call-arg]
    async def unknown_option(job: Job[SendEmail]) -> None: ...

    @app.worker(SendEmail, execution="gpu")  # type: ignore[arg-type]
    async def unknown_execution(job: Job[SendEmail]) -> None: ...

    @app.task(kind="t", quue="x")  # type: ignore[call-arg]
    async def unknown_task_option() -> None: ...

    @app.worker(Thumb, execution="process")
    def in_process(job: ProcessJob[Thumb]) -> int:
        assert_type(job.args, Thumb)
        assert_type(job.app, None)
        job.checkpoint({"done": 1})
        return len(job.client)  # type: ignore[attr-defined]

    assert_type(in_process, Callable[[ProcessJob[Thumb]], int])
    app.add_worker(Thumb, in_process, execution="process")
    app.add_worker(SendEmail, in_process, execution="process")  # type: ignore[arg-type]

    app.add_worker(SendEmail, with_app)
    app.add_worker(Thumb, thumb)
    app.add_worker(Thumb, send_email)  # type: ignore[arg-type]


async def call_workers(job: Job[SendEmail, AppState], thumb_job: SyncJob[Thumb, AppState]) -> None:
    app = Registry[AppState]()

    @app.worker(SendEmail)
    async def send_email(job: Job[SendEmail]) -> int:
        return 1

    @app.worker(Thumb)
    def thumb(job: SyncJob[Thumb, AppState]) -> str:
        return "x"

    # A registered worker can be called, with its own types, in a test of the user's.
    assert_type(await send_email(job), int)
    assert_type(thumb(thumb_job), str)
    await send_email(thumb_job)  # type: ignore[arg-type]


def jobs_of_less_are_taken_for_more(job: Job[SendEmail, AppState]) -> Job[SendEmail]:
    return job


def current() -> Awaitable[None] | None:
    assert_type(current_job(), BaseJob[Any, Any] | None)
    return None
