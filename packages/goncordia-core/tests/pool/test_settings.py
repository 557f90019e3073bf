"""Every wrong setting is refused at construction, by name, before anything happens."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from goncordia import (
    CallNext,
    ConfigurationError,
    FixedRetry,
    Job,
    KindPolicy,
    NoRetry,
    QueuePolicy,
    WorkerPool,
)
from goncordia.gontest import MockClock

from .kit import Kit

POSITIVE = "a positive number of seconds (or timedelta)"
FROM_ZERO = "a number of seconds from 0 (or timedelta)"


async def fine(job: Job[Any, Any], call_next: CallNext) -> object:
    return await call_next(job)


def plain(job: Any, call_next: Any) -> None: ...


async def one(job: Any) -> None: ...


async def told(event: object) -> None: ...


def refusal(kit: Kit, **settings: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        WorkerPool(
            settings.pop("driver", kit.driver), settings.pop("registry", kit.registry), **settings
        )
    return str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("driver", "memory://", "driver: 'memory://' is not a driver, such as SqliteDriver"),
        ("driver", None, "driver: None is not a driver"),
        ("registry", None, "registry: None is not a Registry"),
        ("registry", {}, "registry: {} is not a Registry"),
        # queues
        ("queues", [], "queues: [] is empty; name at least one queue"),
        ("queues", "default", "queues: 'default' is not a sequence of names, such as ['mail']"),
        ("queues", None, "queues: None is not a sequence of names"),
        ("queues", {"a": 0}, "queues['a']: 0 is not a whole number from 1 to 1000"),
        ("queues", ["a", ""], "queues[1]: '' is empty; give 1 to 128 characters"),
        ("queues", ["a" * 129], "short enough: 129 characters, at most 128 are allowed"),
        ("queues", ["a\n"], r"queues[0]: 'a\n' is not free of control characters"),
        ("queues", [5], "queues[0]: 5 is not a str"),
        ("queues", ["b", "a", "b"], "queues[2]: 'b' is there already; name each once"),
        # counts
        ("concurrency", 0, "concurrency: 0 is not a whole number from 1 to 100000"),
        ("concurrency", -1, "concurrency: -1 is not a whole number from 1 to 100000"),
        ("concurrency", 100_001, "concurrency: 100001 is not a whole number from 1 to 100000"),
        ("concurrency", 1.5, "concurrency: 1.5 is not a whole number"),
        ("concurrency", True, "concurrency: True is not a whole number"),
        ("concurrency", "10", "concurrency: '10' is not a whole number"),
        ("concurrency", None, "concurrency: None is not a whole number"),
        ("max_pending", -1, "max_pending: -1 is not a whole number from 0 to 2147483647"),
        ("max_pending", 0.5, "max_pending: 0.5 is not a whole number"),
        ("max_attempts", 0, "max_attempts: 0 is not a whole number from 1 to 2147483647"),
        ("max_attempts", None, "max_attempts: None is not a whole number"),
        ("lanes", 0, "lanes: 0 is not a whole number from 1 to 64"),
        ("lanes", 65, "lanes: 65 is not a whole number from 1 to 64"),
        # durations
        ("poll_interval", 0, f"poll_interval: 0 is not {POSITIVE}"),
        ("poll_interval", -3, f"poll_interval: -3 is not {POSITIVE}"),
        ("poll_interval", float("nan"), f"poll_interval: nan is not {POSITIVE}"),
        ("poll_interval", float("inf"), "poll_interval: inf is not at most a hundred years"),
        ("poll_interval", "1s", f"poll_interval: '1s' is not {POSITIVE}"),
        ("poll_interval", timedelta(0), f"poll_interval: datetime.timedelta(0) is not {POSITIVE}"),
        ("shutdown_timeout", -1, f"shutdown_timeout: -1 is not {FROM_ZERO}"),
        ("shutdown_timeout", None, f"shutdown_timeout: None is not {FROM_ZERO}"),
        ("lease", 0, f"lease: 0 is not {POSITIVE}"),
        ("lease", -5, f"lease: -5 is not {POSITIVE}"),
        ("lease", 10, "heartbeat_interval: 5 s is not below half the lease (10 s)"),
        ("heartbeat_interval", 0, f"heartbeat_interval: 0 is not {POSITIVE}"),
        ("heartbeat_interval", 15, "heartbeat_interval: 15 s is not below half the lease (30 s)"),
        ("heartbeat_interval", timedelta(minutes=1), "60 s is not below half the lease (30 s)"),
        ("rescue_interval", 0, f"rescue_interval: 0 is not {POSITIVE}"),
        ("stall_limit", 0, f"stall_limit: 0 is not {POSITIVE}"),
        # functions
        ("retry_policy", 5, "retry_policy: 5 is not a retry policy or a plain function"),
        ("retry_policy", NoRetry, "is not an instance; write NoRetry()"),
        ("retry_policy", lambda: 5, "a policy takes (attempt) or (attempt, error)"),
        ("middleware", fine, "is not a sequence of async functions"),
        ("middleware", 5, "middleware: 5 is not a sequence of async functions"),
        ("middleware", [fine, 5], "middleware[1]: 5 is not an async function"),
        ("middleware", [plain], "is not async: write async def"),
        ("middleware", [one], "is not a function of (job, call_next)"),
        ("observer", 5, "observer: 5 is not a function of an event, or a sequence of such"),
        ("observer", "log", "observer: 'log' is not a function of an event"),
        ("observer", [print, 5], "observer[1]: 5 is not a function"),
        ("observer", told, "is not a plain function; it is called on the event loop"),
        ("observer", [told], "is not a plain function; it is called on the event loop"),
        ("error_handler", 5, "error_handler: 5 is not a function"),
        ("error_handler", fine, "is not a plain function; it is called on the event loop"),
        # the rest
        ("interrupt_on_lapse", 1, "interrupt_on_lapse: 1 is not True or False"),
        ("worker_id", "", "worker_id: '' is empty; give 1 to 128 characters"),
        ("worker_id", "a\x00", r"worker_id: 'a\x00' is not free of control characters"),
        ("worker_id", "w" * 129, "short enough: 129 characters, at most 128 are allowed"),
        ("worker_id", 5, "worker_id: 5 is not a str"),
        ("queue_policies", [], "queue_policies: [] is not a mapping of names to QueuePolicy"),
        ("queue_policies", {"default": 5}, "queue_policies['default']: 5 is not a QueuePolicy"),
        (
            "queue_policies",
            {"defalt": QueuePolicy(1)},
            "queue_policies: 'defalt' is no queue of this pool; did you mean 'default'?",
        ),
        ("kind_policies", 5, "kind_policies: 5 is not a mapping of names to KindPolicy"),
        (
            "kind_policies",
            {"work": QueuePolicy(1)},
            "kind_policies['work']: QueuePolicy(concurrency=1, rate=None, per_key=None) is not a ",
        ),
        (
            "kind_policies",
            {"wrok": KindPolicy(1)},
            "kind_policies: 'wrok' is no kind with a worker; did you mean 'work'?",
        ),
        ("clock", 5, "clock: 5 is not a Clock"),
        ("rng", 5, "rng: 5 is not a random.Random"),
    ],
)
def test_the_message_names_the_field_the_value_and_what_is_right(
    kit: Kit, field: str, value: object, message: str
) -> None:
    text = refusal(kit, **{field: value})
    assert message in text
    assert text.startswith((field, "heartbeat_interval" if field == "lease" else field))


def test_an_unknown_setting_is_a_type_error(kit: Kit) -> None:
    bad: dict[str, Any] = {"concurency": 5}
    with pytest.raises(TypeError, match="concurency"):
        WorkerPool(kit.driver, kit.registry, **bad)


def test_nothing_happens_at_construction(kit: Kit) -> None:
    WorkerPool(kit.driver, kit.registry)
    assert kit.driver.store.session_list() == []
    kit.registry.add_worker  # noqa: B018  # it is not frozen yet


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"queues": ("a", "b")},
        {"queues": ["q" * 128]},
        {"concurrency": 1, "max_pending": 0, "lanes": 64},
        {"concurrency": 100_000, "max_pending": None},
        {"poll_interval": timedelta(milliseconds=1), "shutdown_timeout": 0},
        {"lease": 1, "heartbeat_interval": 0.49},
        {"lease": timedelta(minutes=10), "stall_limit": timedelta(hours=1)},
        {"retry_policy": FixedRetry(1)},
        {"retry_policy": lambda attempt: attempt},
        {"middleware": [fine, fine]},
        {"observer": print},
        {"observer": [print, print]},
        {"observer": []},
        {"observer": None},
        {"error_handler": print},
        {"queue_policies": {"default": QueuePolicy()}},
        {"kind_policies": {"work": KindPolicy(3)}},
        {"worker_id": "w" * 128},
        {"clock": MockClock(), "rng": random.Random(1)},
    ],
)
def test_what_is_right_is_taken(kit: Kit, settings: dict[str, Any]) -> None:
    make: Callable[..., WorkerPool] = WorkerPool
    assert make(kit.driver, kit.registry, **settings).running == 0


def test_queues_are_kept_in_order(kit: Kit) -> None:
    pool = WorkerPool(kit.driver, kit.registry, queues=["b", "a"])
    assert pool._settings.queues == ("b", "a")


def test_the_defaults_are_those_of_the_docs(kit: Kit) -> None:
    settings = WorkerPool(kit.driver, kit.registry)._settings
    assert (settings.queues, settings.concurrency) == (("default",), 10)
    assert (settings.lease, settings.heartbeat_interval, settings.stall_limit) == (30, 5, 300)
    assert (settings.poll_interval, settings.rescue_interval) == (1, 10)
    assert (settings.shutdown_timeout, settings.max_attempts) == (30, 25)
