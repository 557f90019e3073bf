"""Waiting until what was enqueued is on replicas, or on the disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from redis.exceptions import ResponseError

from goncordia._check import refuse
from goncordia.errors import (
    ConfigurationError,
    DriverError,
    DriverUnavailableError,
    GoncordiaError,
)
from goncordia_driver_redis.errors import code_of
from goncordia_driver_redis.packing import packed
from goncordia_driver_redis.server import Server

__all__ = ["Durability"]


class Durability:
    """What an enqueue waits for before it is said to be done.

    Args:
        replicas: so many replicas have it.
        fsync: it is in the append-only file on the disk, of the replicas as well.
        seconds: so long at most.

    Raises:
        ConfigurationError: a value is wrong.
    """

    def __init__(self, replicas: object, fsync: object, seconds: float) -> None:
        if isinstance(replicas, bool) or not isinstance(replicas, int) or not 0 <= replicas <= 100:
            refuse("replicas", replicas, "a whole number from 0 to 100")
        if not isinstance(fsync, bool):
            refuse("fsync", fsync, "True or False")
        self.replicas = replicas
        self.fsync = fsync
        self._milliseconds = int(seconds * 1000)

    @property
    def is_asked_for(self) -> bool:
        """Whether there is anything to wait for."""
        return self.fsync or bool(self.replicas)

    def unmet(self, info: Mapping[str, str]) -> Iterator[GoncordiaError]:
        """Why no enqueue could become that safe now, and what to do.

        Args:
            info: what the server says of itself; what it does not say is passed over.
        """
        replicas = int(info.get("connected_slaves", "0"))
        if info.get("role") == "master" and replicas < self.replicas:
            # Not a setting that is wrong: one of them may be away for a moment.
            yield DriverUnavailableError(
                f"replicas: the primary has {replicas}, and {self.replicas} are to have what is "
                "enqueued: connect more to it (their replicaof), or ask for fewer",
                outcome="not_applied",
            )
        if not self.fsync:
            return
        server = Server.read(info)
        if server is not None and not server.has_waitaof:
            yield ConfigurationError(
                f"fsync: the server is {server}, which has no WAITAOF; it takes Redis 7.2 or "
                "Valkey 7.2. Or set its appendfsync to always, and leave fsync out"
            )
        elif info.get("aof_enabled") == "0":
            yield ConfigurationError(
                "fsync: the server has no append-only file: set its appendonly to yes, or leave "
                "fsync out"
            )

    def verify(self, info: Mapping[str, str]) -> None:
        """Refuse what :meth:`unmet` finds.

        Raises:
            ConfigurationError: the server cannot do it.
            DriverUnavailableError: there are too few replicas now.
        """
        for error in self.unmet(info):
            raise error

    def commands(self, key: bytes) -> list[bytes]:
        """What is sent behind the insertion.

        The server waits for what its client has written. A repeated insertion writes nothing, and
        would not be waited for; so a key of no meaning is written too.

        Args:
            key: that key.
        """
        if not self.is_asked_for:
            return []
        wait: tuple[bytes | int, ...] = (b"WAIT", self.replicas, self._milliseconds)
        if self.fsync:
            wait = (b"WAITAOF", 1, self.replicas, self._milliseconds)
        return [packed((b"SET", key, b"")), packed(wait)]

    def check(self, answers: Sequence[Any]) -> None:
        """Look at the answers to these commands.

        Raises:
            DriverUnavailableError: it is not that safe yet. The jobs are there, and will run if
                the primary lives.
            DriverError: the server cannot tell; the same of the jobs.
        """
        if not answers:
            return
        for answer in answers:
            if isinstance(answer, ResponseError):
                raise DriverError(
                    "enqueued, but whether it is safe cannot be told: "
                    f"{code_of(answer)} {str(answer).partition(', with args')[0]}",
                    outcome="unknown",
                ) from answer
        reached = answers[-1]
        on_disk, replicas = reached if self.fsync else (1, reached)
        if replicas < self.replicas or not on_disk:
            missing = [] if on_disk else ["the primary's disk"]
            if replicas < self.replicas:
                missing.append(f"{self.replicas - replicas} of {self.replicas} replicas")
            raise DriverUnavailableError(
                f"enqueued, but within {self._milliseconds / 1000:g} s not on "
                f"{' and '.join(missing)}: it is lost if the primary is lost now",
                outcome="unknown",
            )
