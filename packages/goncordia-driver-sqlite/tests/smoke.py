"""Run by CI with nothing installed but this package's wheel."""

from importlib.metadata import version

import goncordia_driver_sqlite

assert goncordia_driver_sqlite.__doc__
assert version("goncordia-driver-sqlite")
