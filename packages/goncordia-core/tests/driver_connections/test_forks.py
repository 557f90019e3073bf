"""What is of one process, in a fork of it."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it takes a system that can fork")

_START = """
import asyncio, faulthandler, gc, os, threading, warnings
from goncordia.driver.connections.forks import Home, of_this_process
from goncordia.driver.once import Once
from goncordia.driver.portal import Portal
from goncordia.errors import ConfigurationError

def say(words):
    os.write(1, f"{words}\\n".encode())

def fork():
    warnings.simplefilter("ignore", DeprecationWarning)  # it says that there are other threads
    if os.fork():
        return False
    faulthandler.dump_traceback_later(30, exit=True)
    return True
"""


def run(program: str) -> list[str]:
    """What a program says, which begins like this."""
    done = subprocess.run(
        [sys.executable, "-c", _START + dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not done.stderr
    return done.stdout.splitlines()


def test_a_portal_is_of_one_process() -> None:
    assert run("""
        async def work():
            return "worked"

        portal = Portal()
        say(portal.call(work))
        if fork():
            try:
                portal.call(work)
            except ConfigurationError as error:
                say("make a new one there" in str(error))
            portal.stop()
            say(portal.is_elsewhere())
        else:
            os.wait()
            say(portal.call(work))
            portal.stop()
            if fork():
                say(portal.call(work))  # it was stopped
                portal.stop()
            else:
                os.wait()
    """) == ["worked", "True", "True", "worked", "worked"]


def test_a_fork_does_not_wait_for_what_its_parent_has_begun() -> None:
    assert run("""
        begun, go_on = threading.Event(), threading.Event()
        once = Once()

        async def open():
            begun.set()
            await asyncio.to_thread(go_on.wait)
            say("opened")

        opening = threading.Thread(target=lambda: asyncio.run(once(open)))
        opening.start()
        begun.wait()
        if fork():
            try:
                asyncio.run(once(open))
            except ConfigurationError as error:
                say("make a new one there" in str(error))
            os._exit(0)
        os.wait()
        go_on.set()
        opening.join()
        say(once.done)
    """) == ["True", "opened", "True"]


def test_what_is_of_one_process_is_never_garbage_in_a_fork() -> None:
    assert run("""
        class Connection:
            def __init__(self):
                self.itself = self

            def __del__(self):
                say("goodbye")

        kept, left = of_this_process(Connection()), of_this_process(Connection())
        if fork():
            del left
            gc.collect()
            mine = of_this_process(Connection())
            mine.itself = None
            del mine
            say("the fork exits")
        else:
            os.wait()
            del left
            gc.collect()
            say("the parent exits")
            kept.itself = None
    """) == ["goodbye", "the fork exits", "goodbye", "the parent exits", "goodbye"]


def test_a_home_is_entered_and_left() -> None:
    assert run("""
        home = Home()
        home.enter()
        home.enter()
        say(home.is_elsewhere())
        if fork():
            say(home.is_elsewhere())
            home.leave()
            home.enter()
        else:
            os.wait()
            home.check()
            home.leave()
            if fork():
                home.enter()
                say(home.is_elsewhere())
            else:
                os.wait()
    """) == ["False", "True", "False"]
