"""Jobs and drivers of these tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from goncordia import AnyDriver
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver


@dataclass
class SendEmail:
    kind: ClassVar[str] = "send_email"
    to: str
    subject: str = "Hello"


@dataclass
class Resize:
    kind: ClassVar[str] = "resize"
    width: int


class Turned:
    """A codec: the text backwards."""

    name = "turned"

    def encode(self, _kind: str, text: bytes, /) -> bytes:
        return text[::-1]

    def decode(self, _kind: str, stored: bytes, /) -> bytes:
        return stored[::-1]


def plain() -> AnyDriver:
    return MemoryDriver()


def still() -> AnyDriver:
    return MemoryDriver(MockClock())


def weak() -> AnyDriver:
    return MemoryDriver(weak=7)


DRIVERS = [plain, still, weak]
