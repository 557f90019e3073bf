"""What a driver can do, flag by flag. Per instance, default off, and proved by the kit."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

__all__ = ["Capabilities", "TxSupport", "Wakeups"]

TxSupport: TypeAlias = Literal["none", "batch", "interactive"]
"""``batch``: what was enqueued is readable only after the commit."""

Wakeups: TypeAlias = Literal["none", "insert", "all"]
"""``insert``: only new jobs wake; ``all``: also freed, cancelled and rescheduled ones."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """The capabilities of one driver instance.

    Attributes:
        native_tx: ``unwrap_tx`` works.
        sync_tx: ``unwrap_sync_tx`` works.
        tx_finish: a claim can be finished inside such a transaction.
        unique_jobs: unique keys hold under concurrency.
        groups: group limits hold under concurrency.
        marks: ``mark_many`` works: started marks and checkpoints.
        fetch_kinds: ``QueueFetch.kinds`` is obeyed, and kinds left out cost nothing.
        strict_fetch_order: also a full fetch result passes over no job that was visible.
        late_find_bound: seconds for which a full result may pass over a job that became visible
            behind newer ones. 0 with ``strict_fetch_order``.
        exchange: ``exchange`` is one round trip and one commit.
        wakeups: what ``listener`` tells.
        server_time: sessions, their leases, queue pauses and every time are the backend's own,
            changed in one atomic step; ``fetch`` then answers ``lost`` and ``paused`` itself.
        linearizable: records are compared and swapped linearizably.
        atomic_insert: how many jobs one ``insert_many`` inserts all or nothing.
        max_payload: bytes of args, at most.
        max_batch: how many items one call of a ``…_many`` takes.
        list_filters: the fields of ``ListFilter`` that ``list`` and ``count`` obey.
        exact_counts: ``count`` and ``queue_stats`` are exact at any size.
    """

    native_tx: TxSupport = "none"
    sync_tx: TxSupport = "none"
    tx_finish: bool = False
    unique_jobs: bool = False
    groups: bool = False
    marks: bool = False
    fetch_kinds: bool = False
    strict_fetch_order: bool = False
    late_find_bound: float = 0.0
    exchange: bool = False
    wakeups: Wakeups = "none"
    server_time: bool = False
    linearizable: bool = False
    atomic_insert: int = 1
    max_payload: int = 1 << 20
    max_batch: int = 1000
    list_filters: frozenset[str] = frozenset()
    exact_counts: bool = False
