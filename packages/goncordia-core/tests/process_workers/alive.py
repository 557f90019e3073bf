"""Whether a process is there."""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_alive"]


def is_alive(pid: int) -> bool:
    """Whether it runs; not when it only waits for its parent to ask how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter: gone while it was read
        return False
