"""The ledger's view of a process: what it asks for, and what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from goncordia.driver import Beat, Claim, FetchRequest, FetchResult, Finish

from .books import Books
from .process import Process

__all__ = ["Requests"]

_NONE = UUID(int=0)

_HELD = 1.2
"""Leases within which a pool asks what it holds: half of one, and half of one for an answer."""


class Requests:
    """Checks what processes send, and notes what they know.

    Args:
        books: the entries.
        lease: of every pool.
        stall_limit: seconds after which a pool whose event loop stands still must not beat.
    """

    def __init__(self, books: Books, *, lease: float, stall_limit: float) -> None:
        self._books = books
        self._lease = lease
        self._stall_limit = stall_limit
        self._asked_ids: set[UUID] = set()
        self._fetches: set[tuple[UUID, int]] = set()
        self._to_rescue: dict[Process, set[Claim]] = {}
        self._asked_held: dict[Process, float] = {}

    # ---------------------------------------------------------------- what it asks for

    def sent(self, process: Process, name: str, args: tuple[Any, ...]) -> None:
        """A process sends a request."""
        match name:
            case "session_open":
                self._opens(process, args[0])
            case "session_beat":
                self._use(args[0])
                self._check_stall(process)
            case "expire":
                self._use(args[0])
            case "held":
                self._asked_held[process] = self._books.loop.time()
            case "fetch":
                self._fetches_now(args[0])
            case "exchange":
                self._check_rescues(process, args[0])
                if args[1] is not None:
                    self._fetches_now(args[1])
            case "finish_many":
                self._check_rescues(process, args[0])
            case _:
                pass

    def _opens(self, process: Process, session: UUID) -> None:
        books = self._books
        if session in self._asked_ids:
            books.bad("a session id was asked for twice")
        self._asked_ids.add(session)
        current = books.current.get(process)
        before = None if current is None else books.sessions.get(current)
        # Who did not wait for the answer to an open does not know that it has a session.
        if before is not None and before.used and before.lost_heard_at is None:
            books.bad("a session was given up that was not lost", before.name)

    def _use(self, session: UUID) -> None:
        entry = self._books.sessions.get(session)
        if entry is not None:
            entry.used = True

    def _check_stall(self, process: Process) -> None:
        blocked = self._books.loop.time() - process.last_halt if process.blocked else 0.0
        if blocked > self._stall_limit:
            self._books.bad("a session was kept though its event loop stands still", process.name)

    def _fetches_now(self, request: FetchRequest) -> None:
        self._use(request.session)
        key = (request.session, request.fetch_no)
        if key in self._fetches:
            self._books.bad("a fetch was repeated")
        self._fetches.add(key)

    def _check_rescues(self, process: Process, finishes: Sequence[Finish]) -> None:
        for finish in finishes:
            if finish.rescue:
                given = self._to_rescue.get(process, set())
                if finish.claim not in given:
                    self._books.bad("a rescue was repeated", self._books.short(finish.claim))
                given.discard(finish.claim)

    # ---------------------------------------------------------------- what it is told

    def answered(
        self, process: Process, name: str, args: tuple[Any, ...], result: Any, sent: float
    ) -> None:
        """A process reads the answer to a request that it sent at that time."""
        books = self._books
        match name:
            case "session_open":
                books.current[process] = args[0]
                self._asked_held[process] = books.loop.time()
                self._contact(process, sent)
            case "session_beat":
                self._beaten(process, args[0], result, sent)
            case "session_close":
                books.current.pop(process, None)
            case "expire":
                given = self._to_rescue.setdefault(process, set())
                given.update(row.claim for row in result if row.claim is not None)
            case "mark_many":
                for mark, outcome in zip(args[0], result, strict=True):
                    if outcome.status != "DONE":
                        books.stale.add(mark.claim)
            case "fetch":
                self._fetched(args[0], result)
            case "exchange":
                if args[1] is not None:
                    self._fetched(args[1], result[1])
            case _:
                pass

    def _contact(self, process: Process, sent: float) -> None:
        since = self._books.doubtful.get(process)
        if since is not None and sent >= since and not process.cut:
            del self._books.doubtful[process]

    def _beaten(self, process: Process, session: UUID, beat: Beat, sent: float) -> None:
        if not beat.held:
            self._lost(session)
        elif session == self._books.current.get(process):
            self._contact(process, sent)
        for claim in beat.cancels:
            # Of a claim that it does not know yet, it hears again with the next beat.
            if claim in self._books.jobs[claim.job_id].known:
                self._books.cancels.setdefault(claim, self._books.loop.time())

    def _fetched(self, request: FetchRequest, result: FetchResult) -> None:
        if result.lost:
            self._lost(request.session)
        for row in result.jobs:
            if row.claim is not None:
                self._books.jobs[row.id].known.add(row.claim)

    def _lost(self, session: UUID) -> None:
        entry = self._books.sessions.get(session)
        if entry is not None and entry.lost_heard_at is None:
            entry.lost_heard_at = self._books.loop.time()
            self._books.counts["sessions lost"] += 1
            self._books.trace("hears lost", entry.name)

    # ---------------------------------------------------------------- now and then

    def look(self) -> None:
        """Every pool that has a session asks what it holds."""
        books = self._books
        for process, asked in self._asked_held.items():
            session = books.sessions.get(books.current.get(process, _NONE))
            if session is None or session.lost_heard_at is not None:
                continue
            silent = books.loop.time() - max(asked, process.last_halt)
            is_working = process.is_turning and process not in books.closing
            if is_working and silent > _HELD * self._lease:
                books.bad("a pool does not ask every half lease what it holds", process.name)
