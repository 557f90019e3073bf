"""``python -m goncordia_bench``."""

import sys

from goncordia_bench.cli import main

sys.exit(main())
