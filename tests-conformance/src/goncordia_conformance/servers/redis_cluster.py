"""A Redis cluster for tests: its nodes run from the same program, on this machine.

::

    cluster = RedisCluster.create(find_redis())
    with guarded(cluster.run) as url:
        ...

Needs redis-py, the kit's extra ``redis``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Final, Self

from goncordia_conformance.backends import Backend
from goncordia_conformance.servers.guard import shared
from goncordia_conformance.servers.process import comes_true, free_port
from goncordia_conformance.servers.redis import (
    TESTS,
    RedisBinary,
    RedisServer,
    find_here,
    told_by,
)

__all__ = ["REDIS_CLUSTER", "RedisCluster"]

SLOTS: Final = 16384

AGREED_WITHIN = 60.0
"""Seconds that the nodes may take until each says the same."""

CALM = 60_000
"""Milliseconds of silence after which a node is given up: no test is that slow by chance."""


MOVED_AT_ONCE: Final = 20
MOVES_WITHIN: Final = 10_000
"""Milliseconds that moving a few keys may take."""


@dataclass(frozen=True)
class RedisCluster:
    """Three primaries that share the slots evenly, and maybe replicas of each.

    Attributes:
        nodes: its servers: the primaries first, then the first's replica, the second's, ….
        primaries: how many of them have slots.
    """

    nodes: Sequence[RedisServer]
    primaries: int = 3

    @classmethod
    def create(
        cls,
        binary: RedisBinary,
        settings: Mapping[str, str] = TESTS,
        *,
        replicas: int = 0,
        node_timeout: int = CALM,
    ) -> Self:
        """Think up a cluster; nothing is started.

        Args:
            binary: what its nodes run from.
            settings: of each node.
            replicas: of each primary.
            node_timeout: milliseconds of silence after which a node is given up.
        """
        own = {
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-node-timeout": f"{node_timeout}",
        }
        common = dict(settings) | own
        nodes = [
            # By itself the port of its bus is 10,000 above, where others may be.
            RedisServer.create(binary, common | {"cluster-port": f"{free_port()}"})
            for _ in range(3 * (1 + replicas))
        ]
        return cls(nodes)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"redis+cluster://{','.join(node.address for node in self.nodes)}"

    @contextmanager
    def run(self) -> Generator[str, None, None]:
        """Make it and start it; stop it and remove it at the end. Meant for ``guarded``.

        Raises:
            RuntimeError: a node did not start, or they did not find each other.
        """
        with ExitStack() as running:
            for node in self.nodes:
                running.enter_context(node.run())
            self._join()
            yield self.url

    def owner(self, key: str, asked: RedisServer) -> RedisServer:
        """Who serves a key's slot, as a node says.

        Args:
            key: any of the slot.
            asked: a node that answers.
        """
        slot = int(asked.ask("CLUSTER", "KEYSLOT", key))
        (port,) = (port for first, last, port, _ in _slots(asked) if first <= slot <= last)
        (owner,) = (node for node in self.nodes if node.port == port)
        return owner

    def fail_over(self, key: str) -> None:
        """Kill a key's owner, wait until its replica is that, and let it come back as a replica.

        Raises:
            RuntimeError: none took over in time, or it was not followed in time.
        """
        first = self.owner(key, self.nodes[0])
        first.kill()
        others = [node for node in self.nodes if node != first]
        self._agreed(lambda node: self.owner(key, node) != first, others)
        first.start()
        self._agreed(self._follows, self.nodes)

    def move(self, key: str, to: RedisServer) -> None:
        """Move a key's slot to another primary, a few keys at a time, as ``redis-cli`` does it."""
        owner = self.owner(key, to)
        slot = owner.ask("CLUSTER", "KEYSLOT", key)
        to_id = to.ask("CLUSTER", "MYID")
        to.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", owner.ask("CLUSTER", "MYID"))
        owner.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", to_id)
        while keys := owner.ask("CLUSTER", "GETKEYSINSLOT", slot, MOVED_AT_ONCE):
            owner.ask("MIGRATE", "127.0.0.1", to.port, "", 0, MOVES_WITHIN, "KEYS", *keys)
        # The new owner first: else there would be a moment in which nobody has it.
        others = [node for node in self.nodes[: self.primaries] if node not in (to, owner)]
        for node in (to, owner, *others):
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", to_id)

    def _join(self) -> None:
        """Share the slots, and let the nodes meet."""
        for number, node in enumerate(self.nodes[: self.primaries]):
            start, end = (SLOTS * n // self.primaries for n in (number, number + 1))
            node.ask("CLUSTER", "ADDSLOTSRANGE", start, end - 1)
            # Each needs an epoch of its own; they would agree on that only after a while.
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        # Each meets each: hearing of one another takes them longer.
        for one, other in combinations(self.nodes, 2):
            one.ask("CLUSTER", "MEET", "127.0.0.1", other.port, other.settings["cluster-port"])
        self._agreed(self._knows_all, self.nodes)
        for number, node in enumerate(self.nodes[self.primaries :]):
            node.ask(
                "CLUSTER", "REPLICATE", self.nodes[number % self.primaries].ask("CLUSTER", "MYID")
            )
        self._agreed(
            lambda node: told_by(node.ask("CLUSTER", "INFO"))["cluster_state"] == "ok", self.nodes
        )
        self._agreed(self._follows, self.nodes)

    def _knows_all(self, node: RedisServer) -> bool:
        """Whether it has met all nodes; those it is about to meet have another name until then."""
        known = node.ask("CLUSTER", "NODES").splitlines()
        return len(known) == len(self.nodes) and not any("handshake" in line for line in known)

    def _follows(self, node: RedisServer) -> bool:
        """Whether a node knows all replicas, and follows its primary if it is one itself."""
        known = {port: replicas for _, _, port, replicas in _slots(node)}
        up = node.info("replication").get("master_link_status", "up") == "up"
        return up and sum(known.values()) == len(self.nodes) - self.primaries

    def _agreed(
        self, condition: Callable[[RedisServer], bool], nodes: Sequence[RedisServer]
    ) -> None:
        if not comes_true(lambda: all(map(condition, nodes)), AGREED_WITHIN):
            told = [node.ask("CLUSTER", "NODES") for node in nodes]
            raise RuntimeError(f"the nodes do not agree: {told}")


def _slots(node: RedisServer) -> Iterator[tuple[int, int, int, int]]:
    """Ranges of slots, as a node knows them: first, last, its owner's port, how many replicas."""
    for first, last, owner, *replicas in node.ask("CLUSTER", "SLOTS"):
        yield first, last, owner[1], len(replicas)


# ---------------------------------------------------------------- as a backend of tests


@contextmanager
def _run() -> Generator[str, None, None]:
    with RedisCluster.create(find_here()).run() as url:
        yield url


REDIS_CLUSTER: Final = Backend("redis-cluster", server=partial(shared, _run, "redis-cluster"))
