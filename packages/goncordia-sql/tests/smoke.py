"""Run by CI with nothing installed but this package's wheel."""

from importlib.metadata import version

import goncordia_sql

assert goncordia_sql.__doc__
assert version("goncordia-sql")
