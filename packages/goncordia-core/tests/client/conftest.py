from __future__ import annotations

import random

import pytest

from goncordia import Client, SyncClient
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver, MemoryTx

from .kit import Hand, ShakyDriver


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


@pytest.fixture
def driver(clock: MockClock) -> MemoryDriver:
    return MemoryDriver(clock)


@pytest.fixture
def client(driver: MemoryDriver) -> Client[MemoryTx]:
    return Client(driver, rng=random.Random(1))


@pytest.fixture
def sync(driver: MemoryDriver) -> SyncClient[MemoryTx]:
    return SyncClient(driver, rng=random.Random(2))


@pytest.fixture
def hand(driver: MemoryDriver) -> Hand:
    return Hand(driver)


@pytest.fixture
def shaky(driver: MemoryDriver) -> ShakyDriver:
    return ShakyDriver(driver)
