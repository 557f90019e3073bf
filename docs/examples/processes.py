"""CPU-bound jobs in processes of their own: beside each other, ended by a timeout, gone on with."""

import asyncio
import os
import time
from dataclasses import dataclass
from typing import ClassVar

from goncordia import Client, JobFailedError, ProcessJob, Registry, WorkerPool
from goncordia.memory import MemoryDriver


@dataclass
class CountPrimes:
    kind: ClassVar[str] = "count_primes"
    below: int


registry = Registry()


@registry.worker(CountPrimes, execution="process", timeout=60)
def count_primes(job: ProcessJob[CountPrimes]) -> int:
    found, start = job.load_checkpoint(tuple[int, int]) or (0, 2)
    for number in range(start, job.args.below):
        if number % 10_000 == 0:
            job.checkpoint((found, number))  # another attempt goes on from here
        found += all(number % divisor for divisor in range(2, int(number**0.5) + 1))
    return found


@registry.task(kind="spin", execution="process", timeout=0.5, max_attempts=1)
def spin() -> None:
    while True:  # no other kind of worker could be ended here
        pass


async def main() -> None:
    driver = MemoryDriver()
    client = Client(driver)
    begun = time.monotonic()
    async with WorkerPool(driver, registry, concurrency=os.cpu_count() or 1):
        counting = [await client.enqueue(CountPrimes(n * 10_000)) for n in (1, 2, 3)]
        for handle in counting:
            print(await client.wait(handle, output=int), "primes")
        spinning = await client.enqueue(spin.args())
        try:
            await client.wait(spinning)
        except JobFailedError:
            print((await client.get(spinning)).errors[0].message)
    print(f"{time.monotonic() - begun:.1f} s")


if __name__ == "__main__":  # the processes import this module
    asyncio.run(main())
