"""What ``goncordia doctor`` says of a server and of its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from redis.exceptions import ResponseError

from goncordia.driver import Finding
from goncordia.driver.connections.pools import Pool
from goncordia_driver_redis.clients.links import AsyncLink, connect
from goncordia_driver_redis.durability import Durability
from goncordia_driver_redis.errors import ACL, DOCS, ERRORS, code_of
from goncordia_driver_redis.operations import Operations
from goncordia_driver_redis.operations.mending import Sums
from goncordia_driver_redis.runner import Runner
from goncordia_driver_redis.server import INFO, read_info

__all__ = ["examine"]

_FULL: Final = 0.9
"""The share of ``maxmemory`` from which on there is something to say."""
_NAMED: Final = 10
"""How many jobs are named at most that nobody holds."""
_SETTINGS: Final = (b"maxmemory-policy", b"maxmemory", b"appendonly", b"appendfsync", b"save")


async def examine(
    pool: Pool[AsyncLink],
    runner: Runner,
    operations: Operations,
    channel: bytes,
    durability: Durability,
) -> list[Finding]:
    """What there is to say of a server with an installation, and of what runs.

    What the user may not ask for is passed over: managed servers hide their settings.

    Args:
        pool: the running event loop's.
        runner: asks.
        operations: the driver's.
        channel: what listeners listen to.
        durability: what an enqueue waits for.
    """

    async def ask(*command: bytes) -> Any:
        answer = await runner.ask(pool, command)
        return None if isinstance(answer, ResponseError) else answer

    info = read_info(await ask(*INFO))
    settings = _pairs(await ask(b"CONFIG", b"GET", *_SETTINGS))
    return [
        *_memory(info, settings),
        *_persistence(info, settings),
        *_replication(info, durability),
        *(Finding("error", str(each)) for each in durability.unmet(info)),
        *await _agreeing(pool, runner, operations),
        *await _hearing(runner, channel),
    ]


def _pairs(answer: Any) -> dict[str, str]:
    """A mapping, which RESP2 tells as a list."""
    if answer is None:
        return {}
    pairs: Any = answer  # RESP3 tells a mapping
    if not isinstance(answer, dict):
        pairs = dict(zip(answer[::2], answer[1::2], strict=True))
    return {name.decode(): value.decode() for name, value in pairs.items()}


def _memory(info: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[Finding]:
    policy = settings.get("maxmemory-policy") or info.get("maxmemory_policy", "noeviction")
    limit = int(settings.get("maxmemory") or info.get("maxmemory", "0"))
    used = int(info.get("used_memory", "0"))
    if policy.startswith("allkeys"):
        yield Finding(
            "error" if limit else "warning",
            f"maxmemory-policy is {policy}: when its memory is full the server throws jobs away. "
            "Set it to noeviction, or use a server of their own for the jobs",
        )
    if limit and used > limit * _FULL:
        yield Finding(
            "warning",
            f"{used * 100 // limit} % of maxmemory is used: when it is full nothing can be "
            "enqueued (work, and its end, go on)",
        )


def _persistence(info: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[Finding]:
    appends = (
        info.get("aof_enabled") == "1"
        if "aof_enabled" in info
        else settings.get("appendonly", "yes") == "yes"
    )
    sync = settings.get("appendfsync", "everysec")
    if not appends:
        if settings.get("save") == "":
            yield Finding(
                "error",
                "persistence is off (appendonly no, and no save): a restart of the server loses "
                "all jobs. Turn appendonly on",
            )
        elif "save" in settings:
            yield Finding(
                "warning",
                "appendonly is off: a crash of the server loses all that happened since its last "
                "snapshot. Turn it on",
            )
    elif sync == "no":
        yield Finding(
            "warning",
            "appendfsync is no: a crash of the machine may lose the last half minute. everysec "
            "loses a second, always nothing",
        )
    if info.get("aof_last_write_status", "ok") != "ok":
        yield Finding("error", "the server fails to write its append-only file; look at its log")


def _replication(info: Mapping[str, str], durability: Durability) -> Iterator[Finding]:
    if info.get("role") == "slave":
        yield Finding(
            "error",
            "the server is a replica, where nothing can be written: connect to the primary, or "
            "through Sentinel (redis+sentinel://…)",
        )
    if info.get("connected_slaves", "0") != "0" and not durability.replicas:
        yield Finding(
            "warning",
            "there are replicas, and an enqueue does not wait for them: a failover may lose what "
            f"was enqueued just before. replicas=1 makes it wait; see {DOCS}/durability.md",
        )


async def _agreeing(pool: Pool[AsyncLink], runner: Runner, operations: Operations) -> list[Finding]:
    """Whether what runs is held, what is held runs, and all else stands where it is looked for."""
    sums = await runner.run(pool, operations.sums())
    problems: list[tuple[str, str]] = []
    if not sums.slots_agree:
        ids = await runner.run(pool, operations.strays(_NAMED))
        problems.append(
            (
                f"{_slots(sums)}: keys of ours were evicted, or deleted by hand"
                + (f"; held by nobody: {', '.join(map(str, ids))}" if ids else ""),
                ", and runs again what nobody holds",
            )
        )
    if not sums.all_placed:
        problems.append(
            (
                f"{max(sums.indexed - sums.placed, 1)} jobs at least are in no line or list, "
                "where worker pools and retention look for them: keys of ours were evicted, or "
                "deleted by hand",
                "",
            )
        )
    return [
        Finding(
            "error",
            f"{problem}. Any worker pool mends that within its retention's interval, a minute"
            f"{more}. Set maxmemory-policy to noeviction, and see who else writes below our "
            f"prefix; more in {DOCS}/failures.md",
        )
        for problem, more in problems
    ]


def _slots(sums: Sums) -> str:
    if sums.counted != sums.held:
        return f"{sums.counted} running jobs are counted, and worker pools hold {sums.held}"
    return (
        f"{sums.grouped} running jobs are counted in groups, and worker pools hold "
        f"{sums.grouped_held}"
    )


async def _hearing(runner: Runner, channel: bytes) -> list[Finding]:
    """Whether the user may listen."""
    try:
        link = await connect(runner.place, protocol=2)
        try:
            await link.ask(b"SSUBSCRIBE", channel)
        finally:
            await link.aclose()
    except ERRORS as error:
        if code_of(error) != "NOPERM":
            raise runner.judged(error, "running", writes=False).error from error
        return [
            Finding(
                "warning",
                f"the user may not hear on the channel {channel.decode()}: idle workers poll "
                f"({error}; the rights are in {ACL})",
            )
        ]
    return []
