"""Build every package, install each from its wheel into an empty environment, and run it there.

    python3 .ci/wheels.py UV [--out FOLDER]

Each package is run twice: with the newest dependencies that its ranges allow, and (on the oldest
Python that is supported) with the lowest, the lowest core among them. What is run is the package's
`tests/smoke.py`, outside the workspace, with nothing installed but the wheel and what it asks for.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = (3, 11)
# `name[extra] >=1.2,<2; marker`: the name, and the lower bound.
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[.*\])?\s*(~=|>=|==)\s*(?P<low>[0-9.]+)")


@dataclass(frozen=True)
class Package:
    """One distribution of the workspace."""

    name: str
    version: str
    folder: Path
    dependencies: dict[str, str]
    """Lower bounds by name."""

    @classmethod
    def read(cls, folder: Path) -> Package:
        """Read a package's `pyproject.toml`."""
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        bounds: dict[str, str] = {}
        for requirement in project.get("dependencies", []):
            if not (match := REQUIREMENT.match(requirement)):
                sys.exit(f"{folder.name}: dependency {requirement!r} has no lower bound")
            bounds[match["name"]] = match["low"]
        return cls(project["name"], project["version"], folder, bounds)

    @property
    def stem(self) -> str:
        """How the names of its files begin."""
        return f"{self.name.replace('-', '_')}-{self.version}"


def sh(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a command that must succeed, without what this process's environment would lend it."""
    lent = ("PYTHONPATH", "VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT")
    env = {key: value for key, value in os.environ.items() if key not in lent}
    env["UV_PYTHON_DOWNLOADS"] = "never"
    if subprocess.run([str(word) for word in command], cwd=cwd, env=env, check=False).returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}")


def inspect(package: Package, dist: Path) -> None:
    """Look into the wheel and the sdist: all that belongs there, nothing else."""
    module = next((package.folder / "src").iterdir()).name
    wheel = zipfile.ZipFile(dist / f"{package.stem}-py3-none-any.whl").namelist()
    with tarfile.open(dist / f"{package.stem}.tar.gz") as archive:
        sdist = [name.partition("/")[2] for name in archive.getnames()]
    info = f"{package.stem}.dist-info"
    wanted = {f"{module}/__init__.py", f"{module}/py.typed", f"{info}/licenses/LICENSE"}
    if missing := wanted - set(wheel):
        sys.exit(f"{package.stem}: the wheel lacks {sorted(missing)}")
    if strangers := [name for name in wheel if not name.startswith((f"{module}/", f"{info}/"))]:
        sys.exit(f"{package.stem}: the wheel should not have {strangers}")
    wanted = {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", f"src/{module}/py.typed"}
    if missing := wanted - set(sdist):
        sys.exit(f"{package.stem}: the sdist lacks {sorted(missing)}")


def lowest_core(uv: Path, package: Package, core: Package, dist: Path) -> Path:
    """Return the wheel of the lowest core that a package allows, built from its tag if older."""
    low = package.dependencies.get(core.name, core.version)
    if low.split(".") == core.version.split("."):
        return dist / f"{core.stem}-py3-none-any.whl"
    out = dist / "lowest" / low
    if not out.exists():
        tag = f"{core.name}-v{low}"
        source = out / "source"
        source.mkdir(parents=True)
        sh("git", "archive", "--output", source / "core.tar", f"{tag}:packages/{core.name}")
        shutil.unpack_archive(source / "core.tar", source, filter="data")
        sh(uv, "build", "--quiet", "--wheel", "--out-dir", out, source)
    return next(out.glob("*.whl"))


def main() -> None:
    """Build, inspect, install and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("uv", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the builds go")
    options = parser.parse_args()
    uv: Path = options.uv
    dist: Path = options.out.resolve()
    folders = [*sorted((ROOT / "packages").glob("*/")), ROOT / "tests-conformance"]
    packages = {p.name: p for p in map(Package.read, folders)}
    core = packages["goncordia-core"]

    shutil.rmtree(dist, ignore_errors=True)
    for package in packages.values():
        print(f"==> building {package.stem}", flush=True)
        # The wheel is built from the sdist, so the sdist is proved complete.
        sh(uv, "build", "--quiet", "--out-dir", dist, "--package", package.name)
        inspect(package, dist)

    def wheel(package: Package) -> Path:
        return dist / f"{package.stem}-py3-none-any.whl"

    def closure(package: Package) -> set[str]:
        own = {name for name in package.dependencies if name in packages}
        return own.union(*(closure(packages[name]) for name in own))

    def try_out(package: Package, *, lowest: bool) -> None:
        print(f"==> {package.stem} alone, with the {'lowest' if lowest else 'newest'}", flush=True)
        with tempfile.TemporaryDirectory() as temporary:
            room = Path(temporary)
            wheels = {name: wheel(packages[name]) for name in closure(package)}
            pins = {n: low for n, low in package.dependencies.items() if n not in packages}
            if lowest and package is not core:
                wheels[core.name] = lowest_core(uv, package, core, dist)
            constraints = room / "constraints.txt"
            constraints.write_text("".join(f"{n}=={low}\n" for n, low in pins.items() if lowest))
            sh(uv, "venv", "--quiet", "--python", sys.executable, room / "venv")
            python = room / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
            install = (uv, "pip", "install", "--quiet", "--python", python)
            sh(*install, "--constraints", constraints, wheel(package), *wheels.values(), cwd=room)
            shutil.copy(package.folder / "tests" / "smoke.py", room / "smoke.py")
            sh(python, "-I", "-W", "error", "smoke.py", cwd=room)

    for package in packages.values():
        try_out(package, lowest=False)
        if sys.version_info[:2] == OLDEST_PYTHON:
            try_out(package, lowest=True)
    print(f"==> {len(packages)} packages: each works from its wheel alone", flush=True)


if __name__ == "__main__":
    main()
