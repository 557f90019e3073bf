"""The limits of one pool: which of its queues and kinds have which, and what they say to a job."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from goncordia.clock import Clock
from goncordia.driver import BaseExecutor, JobRow
from goncordia.engine.buckets import Rule
from goncordia.engine.calls import Calls
from goncordia.engine.keyed import KeyedRate, KeySlots, Later, SharedKeyedRate
from goncordia.engine.run import Run
from goncordia.engine.shared_buckets import SharedBuckets
from goncordia.engine.tokens import LocalTokens, SharedTokens, TokenSource, local_time
from goncordia.job import Job
from goncordia.limits import KindPolicy, QueuePolicy, RateLimit

__all__ = ["Limits"]

_Keyed: TypeAlias = KeyedRate | SharedKeyedRate
_Policy: TypeAlias = QueuePolicy | KindPolicy
_NONE: Final[tuple[Any, ...]] = ()


class Limits:
    """Keeps to the policies of queues and kinds, beyond how many of them run at once.

    Args:
        executor: where shared buckets are.
        calls: how to call it.
        clock: the pool's.
        rng: for jitter between pools.
        queues: the policies of queues.
        kinds: the policies of kinds.
        arrived: called when there are tokens again for fetches.
    """

    def __init__(
        self,
        executor: BaseExecutor,
        calls: Calls,
        clock: Clock,
        rng: random.Random,
        *,
        queues: Mapping[str, QueuePolicy],
        kinds: Mapping[str, KindPolicy],
        arrived: Callable[[], object],
    ) -> None:
        self._executor = executor
        self._calls = calls
        self._clock = clock
        self._rng = rng
        self._arrived = arrived
        self._time = local_time(clock)
        self._shared: list[SharedTokens | SharedKeyedRate] = []
        self.queue_tokens: dict[str, list[TokenSource]] = {}
        self.kind_tokens: dict[str, list[TokenSource]] = {}
        self._keyed: dict[tuple[str, str], list[_Keyed]] = {}
        self._slots: dict[tuple[str, str], KeySlots] = {}
        self._later: dict[TokenSource, Later] = {}
        for name, queue in queues.items():
            self._add("queue", name, queue, self.queue_tokens)
        for name, kind in kinds.items():
            self._add("kind", name, kind, self.kind_tokens)
        self.has_keys = bool(self._keyed or self._slots)

    def __bool__(self) -> bool:
        return bool(self.queue_tokens or self.kind_tokens or self.has_keys)

    def loops(self) -> Iterable[Callable[[], Coroutine[Any, Any, None]]]:
        """What runs beside the fetches."""
        return [each.run for each in self._shared if isinstance(each, SharedTokens)]

    async def close(self) -> None:
        """Return what was reserved and is not needed."""
        for each in self._shared:
            await each.close()

    # ---------------------------------------------------------------- before the start

    def take(self, run: Run) -> float:
        """Take the tokens of a claimed job; 0, or the seconds after which it shall come again."""
        row = run.row
        taken: list[tuple[TokenSource, Any]] = []
        for source in self._tokens(row):
            token, wait = source.take()
            if token is None:
                for other, other_token in taken:
                    other.give_back(other_token)
                return self._later[source].delay("", self._time(), wait)
            taken.append((source, token))
        run.tokens = taken
        return 0.0

    async def admit(self, run: Run, job: Job[Any, Any]) -> float:
        """Ask the limits by key; 0, or the seconds after which the job shall come again.

        Raises:
            ConfigurationError: a key function failed.
        """
        delay = await self._admit(run, job)
        if delay:
            for source, token in run.tokens or _NONE:
                source.give_back(token)
        return delay

    async def _admit(self, run: Run, job: Job[Any, Any]) -> float:
        for part in _parts(run.row):
            if (slots := self._slots.get(part)) is not None:
                key, delay = slots.enter(job)
                if delay:
                    return delay
                run.slots = (*run.slots, (slots, key))
        for part in _parts(run.row):
            for rate in self._keyed.get(part, _NONE):
                if delay := await rate.admit(job):
                    return delay
        return 0.0

    def ended(self, run: Run) -> None:
        """The run is over, or does not begin."""
        for slots, key in run.slots:
            slots.leave(key)
        run.slots = ()

    def _tokens(self, row: JobRow) -> Sequence[TokenSource]:
        return [
            *self.queue_tokens.get(row.queue, _NONE),
            *self.kind_tokens.get(row.kind, _NONE),
        ]

    # ---------------------------------------------------------------- at the beginning

    def _add(
        self,
        what: str,
        name: str,
        policy: _Policy,
        tokens: dict[str, list[TokenSource]],
    ) -> None:
        place = f"{what}_policies[{name!r}]"
        for index, rate in enumerate(policy.rates):
            rule = Rule(rate)
            shared = self._buckets(f"{what}:{name}:{index}", rate, rule)
            keyed: _Keyed
            source: LocalTokens | SharedTokens
            if rate.key is not None:
                where = f"{place}.rate[{index}]"
                if shared is None:
                    keyed = KeyedRate(where, rate.key, rule, self._clock)
                else:
                    keyed = SharedKeyedRate(where, rate.key, rule, shared, self._clock)
                    self._shared.append(keyed)
                self._keyed.setdefault((what, name), []).append(keyed)
                continue
            if shared is None:
                source = LocalTokens(rule, self._clock)
            else:
                source = SharedTokens(shared, self._clock, self._arrived)
                self._shared.append(source)
            tokens.setdefault(name, []).append(source)
            self._later[source] = Later(rule.interval)
        if policy.per_key is not None:
            limit, key = policy.per_key.limit, policy.per_key.key
            self._slots[what, name] = KeySlots(f"{place}.per_key", key, limit, self._clock)

    def _buckets(self, name: str, rate: RateLimit, rule: Rule) -> SharedBuckets | None:
        if rate.scope == "local":
            return None
        return SharedBuckets(self._executor, self._calls, self._clock, self._rng, name, rule)


def _parts(row: JobRow) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("queue", row.queue), ("kind", row.kind)
