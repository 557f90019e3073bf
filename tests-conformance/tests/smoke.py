"""Run by CI with nothing installed but this package's wheel."""

from importlib.metadata import version

import goncordia_conformance

assert goncordia_conformance.__doc__
assert version("goncordia-conformance")
