"""What a worker raises to say how its job goes on.

Any other exception is a failure, and the retry policy decides::

    raise Snooze(60)  # not yet: look again in a minute, without using an attempt
    raise RetryAfter(5, "rate limited")  # failed: again in five seconds
    raise Discard("no such user")  # failed for good
"""

from __future__ import annotations

from datetime import datetime

from goncordia._check import Duration, aware, seconds

__all__ = ["Cancel", "Directive", "Discard", "RetryAfter", "RetryAt", "Snooze"]


class Directive(Exception):
    """The base of the five; not an error of Goncordia's.

    Attributes:
        reason: why; kept with the job where the directive ends or fails an attempt.
    """

    def __init__(self, reason: str = "") -> None:
        self.reason = str(reason)
        super().__init__(self.reason)


class Discard(Directive):
    """The job has failed for good: no more attempts, whatever ``max_attempts`` says."""


class Cancel(Directive):
    """The job is not needed any more; it ends ``cancelled`` and counts as no failure."""


class RetryAfter(Directive):
    """The attempt failed; try again after ``delay``, unless it was the last.

    Attributes:
        delay: seconds.
    """

    def __init__(self, delay: Duration, reason: str = "") -> None:
        self.delay = seconds("RetryAfter", delay, zero=True)
        super().__init__(reason)

    def __reduce__(self) -> tuple[type[RetryAfter], tuple[float, str]]:
        return type(self), (self.delay, self.reason)


class RetryAt(Directive):
    """The attempt failed; try again at ``when``, unless it was the last.

    Attributes:
        when: an aware datetime, in UTC.
    """

    def __init__(self, when: datetime, reason: str = "") -> None:
        self.when = aware("RetryAt", when)
        super().__init__(reason)

    def __reduce__(self) -> tuple[type[RetryAt], tuple[datetime, str]]:
        return type(self), (self.when, self.reason)


class Snooze(Directive):
    """It is too early: run the job again after ``delay``. The attempt does not count.

    Attributes:
        delay: seconds.
    """

    def __init__(self, delay: Duration, reason: str = "") -> None:
        self.delay = seconds("Snooze", delay, zero=True)
        super().__init__(reason)

    def __reduce__(self) -> tuple[type[Snooze], tuple[float, str]]:
        return type(self), (self.delay, self.reason)
