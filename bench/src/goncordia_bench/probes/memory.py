"""How much memory this process has."""

from __future__ import annotations

import gc
import os
import resource
import sys
from pathlib import Path

__all__ = ["resident"]


def resident() -> int:
    """Bytes of this process that are in memory now, after a full collection.

    Where the system does not tell: the most that it ever were.
    """
    gc.collect()
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
