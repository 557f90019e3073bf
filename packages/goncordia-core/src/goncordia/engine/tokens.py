"""The tokens of rates without a key: what a fetch may bring, and what each claimed job takes."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from goncordia.clock import Clock
from goncordia.engine.buckets import Bucket, Rule
from goncordia.engine.logs import Failures
from goncordia.engine.shared_buckets import SharedBuckets
from goncordia.engine.signal import Signal

__all__ = ["LocalTokens", "SharedTokens", "TokenSource", "local_time"]

_logger = logging.getLogger("goncordia.engine")

_HOLD: Final = 2.0
"""Seconds for which a pool keeps shared tokens that it does not use."""

_GLANCE: Final = 0.5
"""The same for one that has had no use for any lately: it keeps one, to see whether it has."""

_PAUSE: Final = 0.5
"""Seconds to wait after the backend failed."""

_AHEAD: Final = 3
"""Tokens that are kept ready where fetches do not ask for them."""

_SOON: Final = 0.05
"""Seconds for which a token is on its way, more or less."""


class TokenSource(Protocol):
    """Where the jobs of a queue or kind take their tokens from."""

    def available(self, wanted: int, asked: int) -> int:
        """How many there are now, of so many that a fetch would like, beside those asked for."""
        ...

    def wait(self) -> float | None:
        """Seconds until there is one; None: it will say so itself, or there is one."""
        ...

    def take(self) -> tuple[Any, float]:
        """Take one: what giving it back asks for, and 0; or None, and the wait."""
        ...

    def give_back(self, token: Any) -> None:
        """Return one."""
        ...


def local_time(clock: Clock) -> Callable[[], float]:
    """A clock of seconds since 1970, which no step of the machine's wall clock moves."""
    offset = clock.now().timestamp() - clock.monotonic()
    return lambda: offset + clock.monotonic()


class LocalTokens:
    """A pool's own bucket.

    Args:
        rule: the rate.
        clock: the pool's.
    """

    def __init__(self, rule: Rule, clock: Clock) -> None:
        self._rule = rule
        self._time = local_time(clock)
        self._bucket = Bucket()

    def available(self, wanted: int, asked: int) -> int:
        """See :class:`TokenSource`."""
        return min(wanted, self._rule.free(self._bucket, self._time()) - asked)

    def wait(self) -> float | None:
        """See :class:`TokenSource`."""
        return self._rule.wait(self._bucket, self._time()) or None

    def take(self) -> tuple[Any, float]:
        """See :class:`TokenSource`."""
        now = self._time()
        if self._rule.free(self._bucket, now) < 1:
            return None, self._rule.wait(self._bucket, now)
        return self._rule.take(self._bucket, now, 1), 0.0

    def give_back(self, token: float) -> None:
        """See :class:`TokenSource`."""
        self._rule.give_back(self._bucket, self._time(), 1, token)


class _Held(NamedTuple):
    """A token that was taken from a shared bucket.

    Attributes:
        base: what giving it back asks for.
        until: when, on the pool's monotonic clock, it is worth nothing any more.
    """

    base: float
    until: float


class SharedTokens:
    """A few tokens of a bucket that all pools share, reserved for the next fetches.

    Fetches ask for them, a task of its own gets them, and returns what nobody used. Those of a
    pool that is killed are lost, and those whose time goes by: else an idle pool would gather more
    than the bucket ever holds.

    Args:
        buckets: the rate's.
        clock: the pool's.
        arrived: called when there are some.
    """

    def __init__(self, buckets: SharedBuckets, clock: Clock, arrived: Callable[[], Any]) -> None:
        self._buckets = buckets
        self._clock = clock
        self._arrived = arrived
        self._held: deque[_Held] = deque()
        self._wanted = 0
        self._used = False
        self._busy_until = float("-inf")
        self._asked = Signal(clock)

    def available(self, wanted: int, asked: int) -> int:
        """See :class:`TokenSource`."""
        self._forget(asked)
        self._ask(wanted + asked if self._busy else max(asked, 1))
        return min(wanted, len(self._held) - asked)

    def wait(self) -> float | None:
        """See :class:`TokenSource`."""
        return None

    def take(self) -> tuple[Any, float]:
        """See :class:`TokenSource`."""
        self._busy_until = self._clock.monotonic() + _HOLD
        if not self._held:
            self._ask(_AHEAD)  # no fetch asks for it: the driver cannot choose kinds
            return None, _SOON
        self._used = True
        token = self._held.popleft()
        self._ask(_AHEAD)
        return token, 0.0

    def give_back(self, token: _Held) -> None:
        """See :class:`TokenSource`."""
        self._held.appendleft(token)

    @property
    def _busy(self) -> bool:
        """Whether there was use for a token lately."""
        return self._clock.monotonic() < self._busy_until

    def _ask(self, wanted: int) -> None:
        if wanted > len(self._held):
            self._wanted = wanted
            self._asked.set()

    def _forget(self, asked: int) -> None:
        """Drop what is over, but for the first ones: requests under way go by them."""
        now = self._clock.monotonic()
        if any(token.until < now for token in self._held):
            kept = [t for i, t in enumerate(self._held) if i < asked or t.until >= now]
            self._held = deque(kept)

    async def run(self) -> None:
        """Get what is asked for, and return what is not used; for ever."""
        failures = Failures("reserving tokens of a rate limit")
        while True:
            hold = _HOLD if self._busy else _GLANCE
            asked = await self._asked.wait(hold if self._held else None)
            try:
                if asked:
                    pause = await self._reserve()
                else:
                    pause = 0.0
                    await self._return()
            except Exception as error:  # noqa: BLE001  # what was taken is lost
                failures.failed(error)
                self._asked.set()  # nobody else will ask, as long as there is nothing
                pause = _PAUSE
            else:
                failures.succeeded()
            if pause:
                await self._clock.sleep(pause)

    async def close(self) -> None:
        """Return what is left, as a courtesy."""
        self._used = False
        try:
            await self._return()
        except Exception as error:  # noqa: BLE001  # they are lost
            _logger.debug("returning tokens failed: %s: %s", type(error).__name__, error)

    async def _reserve(self) -> float:
        """Seconds to wait before the next try; 0: there is what was asked for."""
        missing = self._wanted - len(self._held)
        if missing <= 0:
            return 0.0
        grant = (await self._buckets.take({"": missing}))[""]
        if grant.tokens:
            now = self._clock.monotonic()
            self._held.extend(_Held(grant.base, now + lasts) for lasts in grant.lasts)
            self._arrived()
            return 0.0
        if self._held:
            return 0.0  # these first; what nobody uses is not to be held for so long
        self._asked.set()  # try again, whether or not a fetch asks meanwhile
        return grant.wait or _SOON

    async def _return(self) -> None:
        used, self._used = self._used, False
        if used or not self._held:
            return
        held = list(self._held)
        self._held.clear()
        await self._buckets.give_back("", len(held), min(token.base for token in held))
