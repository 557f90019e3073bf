"""What holds for the tests of all packages: how Hypothesis looks for examples."""

from __future__ import annotations

import os

from hypothesis import settings

FULL = os.environ.get("GONCORDIA_FULL") == "1"

# The run that lets a change land can be repeated: its examples are the same each time. The long one
# looks for new ones. A busy machine is slow, not wrong: how long one takes says nothing.
settings.register_profile("goncordia", deadline=None, print_blob=True, derandomize=not FULL)
settings.load_profile("goncordia")
