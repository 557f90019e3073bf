"""What the pages need to be a site: they are written to be read in the repository, too."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
# A fenced block, which stays as it is, or a comment: notes to the tests of the pages.
FENCE_OR_COMMENT = re.compile(r"^```.*?^```$|<!--.*?-->\n?", re.DOTALL | re.MULTILINE)
FENCE_OR_LINK = re.compile(r"^```.*?^```$|(?<=\]\()(?!\w+:)[^)\s#]+", re.DOTALL | re.MULTILINE)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave comments out, and point links to what is no part of the site into the repository."""

    def without(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith("```") else ""

    def led(match: re.Match[str]) -> str:
        link = match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), link))
        if link.startswith("```") or files.get_file_from_path(path):
            return link
        target = (Path(config.docs_dir) / path).resolve()
        if not target.exists():
            raise PluginError(f"{page.file.src_uri}: {link} leads nowhere")
        kind = "tree" if target.is_dir() else "blob"
        return f"{config.repo_url}/{kind}/main/{target.relative_to(ROOT).as_posix()}"

    return FENCE_OR_LINK.sub(led, FENCE_OR_COMMENT.sub(without, markdown))
