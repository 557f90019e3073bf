"""Run by CI with nothing installed but this package's wheel."""

from importlib.metadata import version

import goncordia

assert goncordia.__doc__
assert version("goncordia-core")
