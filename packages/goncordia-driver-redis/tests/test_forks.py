"""A driver that was used, in a fork of its process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Final
from urllib.parse import quote

import pytest

PROGRAM: Final = """
import asyncio, os, sys
from goncordia import Client, ConfigurationError, Registry, SyncClient, connect

registry = Registry()

@registry.task(kind="work")
async def work() -> None: ...

def enqueue():
    if asynchronous:
        asyncio.run(Client(driver).enqueue(work.args()))
    else:
        SyncClient(driver).enqueue(work.args())

url, asynchronous = sys.argv[1], sys.argv[2] == "asynchronous"
driver = connect(url)
asyncio.run(driver.migrate())
enqueue()
if not os.fork():
    try:
        enqueue()
    except ConfigurationError as error:
        print("refused:", error, flush=True)
    driver = connect(url)
    enqueue()
    print("enqueued by a new one", flush=True)
    os._exit(0)
os.wait()
enqueue()
print("done")
"""


@pytest.mark.parametrize("how", ["asynchronous", "synchronous"])
async def test_it_is_refused(redis_url: str, redis_prefix: str, how: str) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", PROGRAM, f"{redis_url}?prefix={quote(redis_prefix)}", how],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    refused, new, end = done.stdout.splitlines() or [done.stderr, "", ""]
    assert "opened in process" in refused
    assert "used in its fork" in refused
    assert "make a new one there" in refused
    assert (new, end) == ("enqueued by a new one", "done")
