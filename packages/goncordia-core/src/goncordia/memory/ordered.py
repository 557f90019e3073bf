"""A list that stays sorted while items come and go."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

__all__ = ["Ordered"]

T = TypeVar("T", bound=tuple[Any, ...])

_CHUNK: Final = 256
_last = itemgetter(-1)


class Ordered(Generic[T]):
    """Distinct tuples in ascending order, in chunks of bounded length.

    Adding, removing and finding are O(log n) for all but the list of chunks; items that arrive in
    order are appended at once.
    """

    __slots__ = ("_chunks",)

    def __init__(self) -> None:
        self._chunks: list[list[T]] = []

    def __bool__(self) -> bool:
        return bool(self._chunks)

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def __iter__(self) -> Iterator[T]:
        for chunk in self._chunks:
            yield from chunk

    @property
    def first(self) -> T:
        """The least item; there must be one."""
        return self._chunks[0][0]

    def add(self, item: T) -> None:
        """Put the item in its place."""
        chunks = self._chunks
        if not chunks:
            chunks.append([item])
            return
        if item > chunks[-1][-1]:
            at = len(chunks) - 1
            chunks[at].append(item)
        else:
            at = bisect_left(chunks, item, key=_last)
            insort(chunks[at], item)
        chunk = chunks[at]
        if len(chunk) > 2 * _CHUNK:
            chunks.insert(at + 1, chunk[_CHUNK:])
            del chunk[_CHUNK:]

    def remove(self, item: T) -> None:
        """Take out an item that is there."""
        chunks = self._chunks
        if item == chunks[0][0]:
            at = place = 0
        else:
            at = bisect_left(chunks, item, key=_last)
            place = bisect_left(chunks[at], item)
        del chunks[at][place]
        if not chunks[at]:
            del chunks[at]

    def after(self, bound: tuple[Any, ...]) -> T | None:
        """The least item above the bound, which need not be an item."""
        at = bisect_right(self._chunks, bound, key=_last)
        if at == len(self._chunks):
            return None
        chunk = self._chunks[at]
        return chunk[bisect_right(chunk, bound)]

    def below(self, bound: tuple[Any, ...] | None) -> Iterator[T]:
        """The items below the bound, or all, in descending order."""
        chunks = self._chunks
        at = len(chunks) if bound is None else bisect_left(chunks, bound, key=_last) + 1
        for chunk in reversed(chunks[:at]):
            stop = len(chunk) if bound is None else bisect_left(chunk, bound)
            yield from reversed(chunk[:stop])
