"""A real bash completes the names of queues that are in a database."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from goncordia import SyncClient
from goncordia_driver_sqlite import SqliteDriver

BASH = shutil.which("bash")

TAB = """
eval "$(_GONCORDIA_COMPLETE=source_bash goncordia)"
COMP_WORDS=(goncordia queues pause po)
COMP_CWORD=3
_goncordia_completion goncordia
echo "${COMPREPLY[*]}"
"""


@dataclass
class Mail:
    kind: ClassVar[str] = "mail"


@pytest.mark.skipif(BASH is None, reason="there is no bash here")
def test_bash_completes_queues(path: Path) -> None:
    assert BASH is not None
    bin_ = Path(sys.executable).parent
    env = os.environ | {
        "GONCORDIA_URL": f"sqlite:///{path}",
        "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
    }

    def tab() -> str:
        words = [BASH, "--norc", "-c", TAB]
        return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout

    assert tab() == "\n"
    assert not path.exists()  # who presses a key makes no database
    with SqliteDriver(path) as driver:
        driver.migrate_sync()
        SyncClient(driver).enqueue(Mail(), queue="post")
        SyncClient(driver).enqueue(Mail(), queue="other")
    # A machine that is busy for longer than who presses the key has patience offers nothing.
    assert "post\n" in (tab() for _ in range(20))
