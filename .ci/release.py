"""Check that a release tag is true, and print what the release workflow needs to know.

    python3 .ci/release.py goncordia-driver-sqlite-v0.1.0

The tag must name a published package of this workspace and the version that stands in its
`pyproject.toml`, and its changelog must have that version with the date of the release.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def check(tag: str) -> str:
    """Return the name of the package that a tag releases.

    Raises:
        SystemExit: the tag does not fit what is in the workspace.
    """
    projects: dict[str, tuple[Path, str]] = {}
    for folder in [*(ROOT / "packages").glob("*/"), ROOT / "tests-conformance"]:
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        projects[project["name"]] = folder, project["version"]
    name, _, version = tag.rpartition("-v")
    if name not in projects:
        sys.exit(f"tag {tag!r}: no package {name!r}; there are {', '.join(sorted(projects))}")
    folder, declared = projects[name]
    if version != declared:
        sys.exit(f"tag {tag!r}: the version of {name} is {declared}")
    changelog = (folder / "CHANGELOG.md").read_text()
    if not re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE
    ):
        sys.exit(f"tag {tag!r}: the changelog of {name} has no dated entry `## [{version}] - …`")
    return name


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"package={check(sys.argv[1])}")
