from __future__ import annotations

from hypothesis import settings

# A busy machine is slow, not wrong: how long one example takes says nothing.
settings.register_profile("goncordia", deadline=None)
settings.load_profile("goncordia")
