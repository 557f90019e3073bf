"""A Redis primary, a replica that follows it, and Sentinels that watch them, for tests.

::

    watched = RedisSentinel.create(find_redis())
    with guarded(watched.run) as url:
        ...

Needs redis-py, the kit's extra ``redis``.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

from goncordia_conformance.backends import Backend
from goncordia_conformance.servers.guard import shared
from goncordia_conformance.servers.process import comes_true
from goncordia_conformance.servers.redis import TESTS, RedisBinary, RedisServer, find_here

__all__ = ["REDIS_SENTINEL", "RedisSentinel"]

NAME: Final = "jobs"
"""By which the Sentinels know the primary."""

CALM = 60_000
"""Milliseconds of silence after which a primary is given up: no test is that slow by chance."""

READY_WITHIN = 60.0


@dataclass(frozen=True)
class RedisSentinel:
    """Two servers, of which one is the primary, and who watches them.

    Attributes:
        servers: the first is the primary, until another one is made it.
        sentinels: who watches them.
    """

    servers: Sequence[RedisServer]
    sentinels: Sequence[RedisServer]

    @classmethod
    def create(
        cls,
        binary: RedisBinary,
        settings: Mapping[str, str] = TESTS,
        *,
        sentinels: int = 1,
        settle: int = CALM,
    ) -> Self:
        """Think up servers; nothing is started.

        Args:
            binary: what they run from.
            settings: of the primary and its replica.
            sentinels: how many watch; more than half of them decide.
            settle: milliseconds of silence after which the primary is given up.
        """
        common = {"repl-diskless-sync": "yes", "repl-diskless-sync-delay": "0"} | dict(settings)
        primary = RedisServer.create(binary, common)
        replica = RedisServer.create(binary, common | {"replicaof": f"127.0.0.1 {primary.port}"})
        own = {
            f"sentinel monitor {NAME}": f"127.0.0.1 {primary.port} {sentinels // 2 + 1}",
            f"sentinel down-after-milliseconds {NAME}": f"{settle}",
            f"sentinel failover-timeout {NAME}": f"{4 * settle}",
        }
        watching = [RedisServer.create(binary, own, "--sentinel") for _ in range(sentinels)]
        return cls([primary, replica], watching)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"redis+sentinel://{','.join(one.address for one in self.sentinels)}/{NAME}/0"

    @contextmanager
    def run(self) -> Generator[str, None, None]:
        """Start all of it; stop it and remove it at the end. Meant for ``guarded``.

        Raises:
            RuntimeError: one did not start, or they did not find each other.
        """
        with ExitStack() as running:
            for server in (*self.servers, *self.sentinels):
                running.enter_context(server.run())
            if not comes_true(self._is_ready, READY_WITHIN):
                told = [one.info("sentinel") for one in self.sentinels]
                raise RuntimeError(f"the replica or a Sentinel is not seen: {told}")
            yield self.url

    def primary(self, asked: int = 0) -> RedisServer:
        """Who is the primary, as a Sentinel says."""
        _, port = self.sentinels[asked].ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)
        (primary,) = (server for server in self.servers if server.port == int(port))
        return primary

    def fail_over(self, *, frozen: bool = False) -> None:
        """Let the replica become the primary, and the one that was it so far follow it.

        Args:
            frozen: it only stands still, and when it goes on it takes itself for the primary until
                the Sentinels tell it; else it is killed, and comes back as a replica.

        Raises:
            RuntimeError: none became it in time, or it was not followed in time.
        """
        first = self.primary()
        if frozen:
            first.freeze()
        else:
            first.kill()
        # All of them: a killed one comes back empty, and nobody must be sent to it.
        if not comes_true(lambda: first not in map(self.primary, self._asked), READY_WITHIN):
            raise RuntimeError(f"no other is the primary: {self.sentinels[0].info('sentinel')}")
        if frozen:
            first.thaw()
        else:
            first.start("--replicaof", f"127.0.0.1 {self.primary().port}")
        if not comes_true(lambda: _is_in_step(first), READY_WITHIN):
            raise RuntimeError(f"the replica does not follow: {first.info('replication')}")

    @property
    def _asked(self) -> range:
        return range(len(self.sentinels))

    def _is_ready(self) -> bool:
        """Whether the replica is in step, and every Sentinel knows it and the other Sentinels."""
        if not _is_in_step(self.servers[1]):
            return False
        known = f"slaves=1,sentinels={len(self.sentinels)}"
        return all(one.info("sentinel")["master0"].endswith(known) for one in self.sentinels)


def _is_in_step(replica: RedisServer) -> bool:
    from redis.exceptions import ConnectionError as HungUpError

    try:
        return replica.info("replication").get("master_link_status") == "up"
    except HungUpError:  # as a primary does that is told to follow another
        return False


# ---------------------------------------------------------------- as a backend of tests


@contextmanager
def _run() -> Generator[str, None, None]:
    with RedisSentinel.create(find_here()).run() as url:
        yield url


REDIS_SENTINEL: Final = Backend("redis-sentinel", server=partial(shared, _run, "redis-sentinel"))
