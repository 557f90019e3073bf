"""What the parts of the ledger write and read in common, and how they give their verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from uuid import UUID

from goncordia.driver import Claim, JobRow

from .entries import JobEntry, RunEntry, SessionEntry
from .loop import SimLoop
from .process import Process
from .rates import Rates

__all__ = ["Books"]


class Books:
    """All entries of one seed.

    Attributes:
        loop: for the time.
        trace: told of everything.
        broken: which rules were broken, and how often.
        first: when the first was, and which.
        counts: what happened how often.
        jobs: by id.
        sessions: by id.
        running: the runs that go on, by job.
        current: the session that each process was last told is open.
        doubtful: processes that may have lost their session without knowing, and until when that
            goes on: a beat sent later, and answered, ends it.
        closing: processes that shut down.
        lapsing: processes that interrupt what runs when a lease goes by without contact.
        slots: how many handlers each process may run at once.
        narrow: the queues and kinds of which each process may run only one at once.
        known: the kinds that each process has workers for.
        rates: how often jobs may start.
        cancels: the claims of which their process heard that a cancel was requested, and when.
        stale: claims of which their process was told that they are over.

    Args:
        loop: see the attribute.
        trace: see the attribute.
        max_attempts: by kind, where the job does not say.
    """

    def __init__(
        self, loop: SimLoop, trace: Callable[..., None], max_attempts: Callable[[str], int]
    ) -> None:
        self.loop = loop
        self.trace = trace
        self._max_attempts = max_attempts
        self.broken: Counter[str] = Counter()
        self.first: tuple[float, str] | None = None
        self.counts: Counter[str] = Counter()
        self.jobs: dict[UUID, JobEntry] = {}
        self.sessions: dict[UUID, SessionEntry] = {}
        self.running: dict[UUID, list[RunEntry]] = {}
        self.current: dict[Process, UUID] = {}
        self.doubtful: dict[Process, float] = {}
        self.closing: set[Process] = set()
        self.lapsing: set[Process] = set()
        self.slots: dict[Process, int] = {}
        self.narrow: dict[Process, set[str]] = {}
        self.known: dict[Process, frozenset[str]] = {}
        self.rates = Rates(0, wanted=False, shared=False)
        self.cancels: dict[Claim, float] = {}
        self.stale: set[Claim] = set()

    def bad(self, what: str, *details: object) -> None:
        """A rule was broken."""
        self.broken[what] += 1
        self.trace("BAD", what, *details)
        if self.first is None:
            self.first = (round(self.loop.time(), 3), what)

    def short(self, claim: Claim) -> str:
        """A claim for the trace."""
        job, session = self.jobs.get(claim.job_id), self.sessions.get(claim.session)
        number = job.number if job else claim.job_id
        return f"j{number}/{session.name if session else claim.session}/{claim.fetch_no}"

    def sure(self, process: Process) -> bool:
        """Whether nobody but the process itself may run its jobs."""
        return not process.dead and not process.stopped and process not in self.doubtful

    def doubt(self, process: Process, until: float | None = None) -> None:
        """The process may lose its session now, or until then, without knowing."""
        now = self.loop.time()
        until = now if until is None else until
        self.doubtful[process] = max(self.doubtful.get(process, now), until)

    def limit(self, job: JobEntry, row: JobRow) -> int:
        """How many attempts the job may have."""
        return max(row.max_attempts or self._max_attempts(job.new.kind), job.granted)

    def is_lost(self, claim: Claim) -> bool:
        """Whether its process was told that the claim, or its whole session, is over."""
        return self.sessions[claim.session].lost_heard_at is not None or claim in self.stale
