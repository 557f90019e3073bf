"""Run by CI with nothing installed but this package's wheel: the kit over the docs' example."""

import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import goncordia_conformance

assert goncordia_conformance.__doc__
assert version("goncordia-conformance")

example = Path(__file__).parents[2] / "docs" / "examples" / "goncordia-driver-dict"
if example.is_dir():
    with tempfile.TemporaryDirectory() as folder:
        # Away from the workspace, whose settings it must not need.
        copy = shutil.copytree(example, Path(folder) / example.name)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        subprocess.run(command, cwd=copy, check=True)
