"""A coroutine that was begun by somebody who cannot wait, and is awaited by somebody else."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Final, Generic, TypeVar

__all__ = ["Begun"]

T = TypeVar("T")

_NOT_ENDED: Final = object()


class Begun(Generic[T]):
    """Makes the first step of a coroutine now, and the others when it is awaited, once.

    What the first step raises comes when it is awaited. Who does not await it closes it.

    Args:
        coroutine: its first step asks for no current task (as ``asyncio.timeout`` does): there may
            be none, or another than the one that awaits it.
    """

    __slots__ = ("_coroutine", "_error", "_result", "_waits_for")

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._result: Any = _NOT_ENDED
        self._error: Exception | None = None
        self._waits_for: Any = None
        try:
            self._waits_for = coroutine.send(None)
        except StopIteration as done:
            self._result = done.value
        except Exception as error:  # noqa: BLE001  # it is raised to who awaits it
            self._error = error

    def __await__(self) -> Generator[Any, Any, T]:
        """Go on with it, to its end."""
        if self._error is not None:
            raise self._error
        while self._result is _NOT_ENDED:
            try:
                try:
                    sent = yield self._waits_for
                except BaseException as error:  # noqa: BLE001  # a cancellation is the coroutine's
                    self._waits_for = self._coroutine.throw(error)
                else:
                    self._waits_for = self._coroutine.send(sent)
            except StopIteration as done:
                self._result = done.value
        result: T = self._result
        return result

    def close(self) -> None:
        """Give it up."""
        self._coroutine.close()
