"""Where the primary is: at an address, or to be asked of Sentinels or of a cluster's nodes.

All keys of an installation are in one slot, so in a cluster, too, there is one server to talk to.
Finding it is a generator that yields questions, so that it exists once, and not per flavour.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, NamedTuple

from redis.crc import key_slot
from redis.exceptions import ResponseError

from goncordia.errors import ConfigurationError, DriverUnavailableError
from goncordia_driver_redis.clients.parameters import Address, Parameters
from goncordia_driver_redis.errors import ERRORS, code_of

__all__ = ["Ask", "ClusterPlace", "FixedPlace", "Place", "SentinelPlace"]


class Ask(NamedTuple):
    """A question to some server: its answer is sent into the generator, or its error is thrown."""

    parameters: Parameters
    command: tuple[bytes, ...]


class Place(ABC):
    """Where the primary is.

    Attributes:
        parameters: how to connect to it, wherever it is.
        generation: counted up whenever it was not where it was thought to be; connections of
            earlier ones are not used any more.
        in_cluster: it is in a cluster.
        moves: others tell where it is.
        proves: whether a new connection is asked whether it is to a primary.
    """

    in_cluster = False
    moves = True
    proves = False

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.generation = 0
        self._found: Parameters | None = None
        self._last: Parameters | None = None

    def doubt(self) -> None:
        """It may not be there any more: look again before the next connection is made."""
        self._found = None

    def forget(self, generation: int, address: tuple[str, int] | None = None) -> None:
        """It is not where it was in this generation.

        Args:
            generation: this.
            address: where the node that was asked thinks it is.
        """
        if generation == self.generation:
            self.generation += 1
            self._last = self._found = None if address is None else self._at(*address)

    def _at(self, host: str, port: int) -> Parameters | None:
        """How to connect to where a node thinks that it is; None: ask others."""
        return None

    def find(self) -> Generator[Ask, Any, Parameters]:
        """Look for it.

        Raises:
            DriverUnavailableError: nobody knows now.
            ConfigurationError: those who were asked know no such thing.
        """
        while self._found is None:
            generation = self.generation
            found = yield from self._look()
            if generation != self.generation:
                continue  # somebody has learnt more meanwhile
            if self._last is not None and found != self._last:
                self.generation += 1  # connections to where it was are of no use
            self._found = self._last = found
        return self._found

    @abstractmethod
    def _look(self) -> Generator[Ask, Any, Parameters]: ...

    @abstractmethod
    def __str__(self) -> str: ...


class FixedPlace(Place):
    """One address, whoever answers there."""

    moves = False

    def _look(self) -> Generator[Ask, Any, Parameters]:
        yield from ()
        return self.parameters

    def __str__(self) -> str:
        return str(self.parameters.address)


class SentinelPlace(Place):
    """Sentinels know.

    Args:
        parameters: for the primary.
        sentinels: for the Sentinels.
        service: the name that they have for the primary.
    """

    proves = True

    def __init__(
        self, parameters: Parameters, sentinels: Sequence[Parameters], service: str
    ) -> None:
        super().__init__(parameters)
        self._sentinels = list(sentinels)
        self._service = service

    def _look(self) -> Generator[Ask, Any, Parameters]:
        command = (b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", self._service.encode())
        failure: Exception | None = None
        strangers = 0
        for sentinel in list(self._sentinels):
            try:
                answer = yield Ask(sentinel, command)
            except ERRORS as error:
                failure = error
                continue
            if answer is None:
                strangers += 1
                continue
            # The one that answers is asked first from now on.
            self._sentinels.remove(sentinel)
            self._sentinels.insert(0, sentinel)
            host, port = answer
            return self.parameters.at(Address(host.decode(), int(port)))
        if strangers == len(self._sentinels):
            raise ConfigurationError(
                f"service: the Sentinels ({self._names()}) know no primary {self._service!r}; it "
                "is the name that `sentinel monitor` gives it"
            )
        raise DriverUnavailableError(
            f"no Sentinel of {self._names()} tells where the primary {self._service!r} is: "
            f"{failure or 'they do not know it'}",
            outcome="not_applied",
        ) from failure

    def _names(self) -> str:
        return ", ".join(str(each.address) for each in self._sentinels)

    def __str__(self) -> str:
        return f"{self._service!r} of the Sentinels {self._names()}"


_NO_CLUSTER: Final = "cluster support disabled"


class ClusterPlace(Place):
    """The nodes of a cluster know.

    Args:
        parameters: for any node.
        nodes: some nodes, or all.
        key: a key of the installation.
        remap: from the addresses that the nodes tell to those that they are reached at.
    """

    in_cluster = True

    def __init__(
        self,
        parameters: Parameters,
        nodes: Sequence[Address],
        key: bytes,
        remap: Callable[[tuple[str, int]], tuple[str, int]] | None = None,
    ) -> None:
        super().__init__(parameters)
        self._given = list(nodes)
        self._known: list[Address] = []
        self._owner: Address | None = None
        self._slot = int(key_slot(key))
        self._remap = remap

    def _look(self) -> Generator[Ask, Any, Parameters]:
        failure: Exception | None = None
        for node in dict.fromkeys([*self._known, *self._given]):
            try:
                answer = yield Ask(self.parameters.at(node), (b"CLUSTER", b"SLOTS"))
            except ResponseError as error:
                if _NO_CLUSTER in str(error):
                    raise ConfigurationError(
                        f"client: {node} is not a node of a cluster; for a single server the URL "
                        "is redis://… and the client redis.asyncio.Redis"
                    ) from error
                if code_of(error) == "NOPERM":
                    raise
                failure = error
                continue
            except ERRORS as error:
                failure = error
                continue
            owner = self._read(answer, node)
            if owner is not None:
                self._owner = owner
                return self.parameters.at(owner)
        raise DriverUnavailableError(
            f"no node of {self} tells who has the slot {self._slot} of our keys: "
            f"{failure or 'nobody has it'}",
            outcome="not_applied",
        ) from failure

    def _read(self, ranges: Any, asked: Address) -> Address | None:
        """Who has our slot, by ``CLUSTER SLOTS``."""
        known: list[Address] = []
        owner: Address | None = None
        for first, last, primary, *_ in ranges:
            host, port = (primary[0] or b"").decode(), int(primary[1])
            # An empty host means the one that was asked; '?' that it is not known.
            address = self._reached(asked.host if host in {"", "?"} else host, port)
            known.append(address)
            if first <= self._slot <= last:
                owner = address
        self._known = known
        return owner

    def _at(self, host: str, port: int) -> Parameters | None:
        return self.parameters.at(self._reached(host, port)) if host not in {"", "?"} else None

    def _reached(self, host: str, port: int) -> Address:
        return Address(*(self._remap((host, port)) if self._remap is not None else (host, port)))

    def __str__(self) -> str:
        given = ", ".join(map(str, self._given))
        if self._owner is None or self._owner in self._given:
            return f"the cluster at {given}"
        # What the nodes tell may be an address that cannot be reached from here.
        return f"{self._owner}, where the cluster at {given} says that our keys are"
