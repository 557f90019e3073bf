"""Wake-ups as they are published."""

from __future__ import annotations

from struct import Struct
from typing import Final
from uuid import UUID

from goncordia.driver import Wake

__all__ = ["heard"]

_DUE_IN: Final = Struct("<d")


def heard(message: bytes) -> list[Wake]:
    """What a message says; one that this version does not know says to look everywhere."""
    what, rest = message[:1], message[1:]
    if what == b"j" and len(rest) >= _DUE_IN.size:
        (due_in,) = _DUE_IN.unpack_from(rest)
        return [Wake("jobs", rest[_DUE_IN.size :].decode(), due_in / 1_000_000)]
    if what == b"c" and len(rest) % 16 == 0:
        ids = [UUID(bytes=rest[at : at + 16]) for at in range(0, len(rest), 16)]
        return [Wake("cancel", job_ids=tuple(ids))]
    if what == b"q":
        return [Wake("queue", rest.decode())]
    return [Wake("gap")]
