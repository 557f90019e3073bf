"""Docstrings as Markdown: roles become code and links, what follows ``::`` becomes a block."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":[a-z]+:`~?([\w.]+)`")
# A line that ends in "::", and the deeper lines after it.
LITERAL = re.compile(
    r"^(?P<indent> *)(?P<said>.*)::\n\n(?P<code>(?:(?P=indent) {4}.*\n?|\n)+)", re.MULTILINE
)


class Markdown(griffe.Extension):
    """Turns each docstring into what the site's renderer reads."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is None:
            return

        def linked(match: re.Match[str]) -> str:
            name = match[1]
            try:
                path = obj.resolve(name)
            except griffe.NameResolutionError:
                return f"`{name}`"
            return f'<autoref identifier="{path}" optional><code>{name}</code></autoref>'

        obj.docstring.value = LITERAL.sub(fenced, ROLE.sub(linked, obj.docstring.value))


def fenced(match: re.Match[str]) -> str:
    indent, said = match["indent"], match["said"]
    code = "".join(
        line.removeprefix(f"{indent}    ") and f"{indent}{line.removeprefix(f'{indent}    ')}"
        for line in match["code"].strip("\n").splitlines(keepends=True)
    )
    first = f"{indent}{said}:\n\n" if said else ""
    return f"{first}{indent}```python\n{code}\n{indent}```\n\n"
