"""The words of the bench.

A *case* is one workload. Its *subjects* (ours, the peers, the floor) each do it in their way and
give *figures*. A *measure* is one line of the table: a figure, or the ratio of two, and what it has
to reach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from goncordia_bench.harness.postgres import Postgres
from goncordia_bench.harness.redis import Redis

__all__ = ["Case", "Figures", "Key", "Measure", "Sample", "Setting", "Subject"]

Figures: TypeAlias = Mapping[str, float]
"""What one run of a subject gives, by name."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a subject is told.

    Attributes:
        quick: small sizes, to see that everything runs; the figures mean little.
        folder: an empty folder of this sample's own, on the disk that is measured.
        shared: a folder that lives as long as the whole run, for what is costly to build.
        server: where databases are made, for the cases that need PostgreSQL.
        redis_url: of the server of the cases that need Redis.
        brief: smaller sizes for those who are slow.
    """

    quick: bool
    folder: Path
    shared: Path
    server: Postgres | None = None
    redis_url: str = ""
    brief: bool = False

    def size(self, full: int, quick: int, brief: int | None = None) -> int:
        """One of them; without a brief one the full one stands for it."""
        if self.quick:
            return quick
        return brief if self.brief and brief is not None else full

    @property
    def postgres(self) -> Postgres:
        """The server of a case that needs one."""
        assert self.server is not None
        return self.server

    @property
    def redis(self) -> Redis:
        """The server of a case that needs Redis."""
        assert self.redis_url
        return Redis(self.redis_url)


@dataclass(frozen=True, slots=True)
class Subject:
    """One way to do a case's workload.

    Attributes:
        name: unique in the case.
        run: does it once.
        once: one round must do: it is slow, and no target is taken from it.
        python: the oldest version that it runs on.
    """

    name: str
    run: Callable[[Setting], Figures]
    once: bool = False
    python: tuple[int, int] = (3, 11)


class Key(NamedTuple):
    """A figure of a subject."""

    subject: str
    figure: str


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table.

    Attributes:
        title: what is measured.
        of: the figure.
        against: the figure that it is divided by, round by round; None: it stands for itself.
        unit: of the figure.
        at_least: the median has to reach it.
        at_most: the median may not exceed it.
    """

    title: str
    of: Key
    against: Key | None = None
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One workload.

    Attributes:
        name: for ``--only``.
        title: a heading.
        about: what exactly is done, and by whom; Markdown.
        subjects: who does it.
        measures: what is made of their figures.
        once: so long that one round must do.
        needs_postgres: a server is started for it.
        needs_redis: likewise.
    """

    name: str
    title: str
    about: str
    subjects: tuple[Subject, ...]
    measures: tuple[Measure, ...]
    once: bool = False
    needs_postgres: bool = False
    needs_redis: bool = False

    @property
    def needs(self) -> str:
        """The server that is started for it: ``postgres``, ``redis``; empty: none."""
        return "postgres" if self.needs_postgres else "redis" if self.needs_redis else ""

    def subject(self, name: str) -> Subject:
        """The subject of that name."""
        return next(subject for subject in self.subjects if subject.name == name)


@dataclass(frozen=True, slots=True)
class Sample:
    """The figures of one run of one subject.

    Attributes:
        case: the case's name.
        subject: the subject's name.
        round: from 0.
        load: the machine's load in the last minute, before it.
        seconds: how long it took in all.
        figures: what it gave.
    """

    case: str
    subject: str
    round: int
    load: float
    seconds: float
    figures: Figures
