"""`python packages/goncordia-core/tests/simulation …`: see `cli`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from simulation.cli import main

    sys.exit(main())
