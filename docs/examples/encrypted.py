"""Encrypted args, and how the key is changed while jobs wait: AES-GCM, by cryptography."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from goncordia import Client, CronScheduler, Job, PeriodicJob, Registry, WorkerPool, cron
from goncordia.memory import MemoryDriver

NEW_YEAR = datetime(2026, 1, 1, 9, tzinfo=UTC)


class Encrypted:
    """A codec. Each value begins with the number of its key, so old and new keys work together."""

    name = "aes-gcm"

    def __init__(self, keys: Mapping[int, bytes], current: int) -> None:
        self._ciphers = {number: AESGCM(key) for number, key in keys.items()}
        self._current = current

    def encode(self, kind: str, text: bytes, /) -> bytes:
        nonce = os.urandom(12)
        sealed = self._ciphers[self._current].encrypt(nonce, text, kind.encode())
        return bytes([self._current]) + nonce + sealed

    def decode(self, kind: str, stored: bytes, /) -> bytes:
        number, nonce, sealed = stored[0], stored[1:13], stored[13:]
        return self._ciphers[number].decrypt(nonce, sealed, kind.encode())


@dataclass
class SendPassport:
    kind: ClassVar[str] = "send_passport"
    number: str


registry = Registry()


@registry.worker(SendPassport)
async def send_passport(job: Job[SendPassport]) -> str:
    return f"passport ending in {job.args.number[-2:]}"


async def main() -> None:
    driver = MemoryDriver()
    first, second = AESGCM.generate_key(256), AESGCM.generate_key(256)

    # Before: everyone has key 1.
    old = await Client(driver, codec=Encrypted({1: first}, 1)).enqueue(SendPassport("X123456"))
    job = await Client(driver).get(old)
    print(job.content, b"X123456" in job.raw_args)

    # 1. Give key 2 to every worker. 2. Then let clients encrypt by it. 3. Take key 1 away at last.
    codec = Encrypted({1: first, 2: second}, 2)
    client = Client(driver, codec=codec)
    new = await client.enqueue(SendPassport("Y987654"))
    yearly = PeriodicJob(cron("0 9 1 1 *"), SendPassport("Z555555"), id="yearly", start_at=NEW_YEAR)
    async with (
        CronScheduler(driver, [yearly], codec=codec),
        WorkerPool(driver, registry, codecs=codec) as pool,
    ):
        print(await client.wait(old))
        print(await client.wait(new))
        while await client.count(state="completed") < 3:
            await pool.drain()
    print({job.content async for job in client.list_all()})


asyncio.run(main())
