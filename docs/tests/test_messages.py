"""Every message of an error, or of doctor, is on a page, so that it is found by its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from goncordia import errors

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(ROOT.glob("packages/*/src/**/*.py"))
PAGES = sorted(ROOT.glob("docs/**/*.md"))

# Where the message is among the arguments of the call.
CALLS = {name: 0 for name in errors.__all__ if name.endswith("Error")}
CALLS |= {"refuse": 2, "Finding": 1, "UnsupportedError": 2}

LEAST = 6
"""What has no longer piece of its own than this passes another's message on."""


class Message(NamedTuple):
    """A message in the source.

    Attributes:
        source: where it is.
        pieces: its text, cut where values are put in.
    """

    source: str
    pieces: list[str]

    @property
    def longest(self) -> str:
        """The piece that is looked for."""
        return max((piece.strip(" :;,.()'") for piece in self.pieces), key=len)

    def __str__(self) -> str:
        return f"{self.source}: {'…'.join(self.pieces)}"


def name_of(node: ast.expr) -> str:
    """The last part of a name."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def pieces(node: ast.expr, given: dict[str, list[ast.expr]]) -> Iterator[list[str]]:
    """The texts that an expression may be; what else it may be is somebody else's text.

    Args:
        node: the expression.
        given: what each name of the module is set to, anywhere in it.
    """
    match node:
        case ast.Constant(value=str(text)):
            yield [text]
        case ast.JoinedStr(values=values):
            cut = [""]
            for value in values:
                if isinstance(value, ast.Constant):
                    cut[-1] += str(value.value)
                else:
                    cut.append("")
            yield cut
        case ast.IfExp(body=one, orelse=other):
            yield from pieces(one, given)
            yield from pieces(other, given)
        case ast.Name(id=name):
            for value in given.get(name, ()):
                yield from pieces(value, given | {name: []})
        case _:
            pass


def messages_of(source: Path) -> Iterator[Message]:
    """The messages that a module may give."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    given: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                given.setdefault(name, []).append(value)
            case _:
                pass
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (place := CALLS.get(name_of(node.func))) is not None:
            for argument in node.args[place : place + 1]:
                for cut in pieces(argument, given):
                    yield Message(f"{source.relative_to(ROOT)}:{node.lineno}", cut)


def folded(text: str) -> str:
    """The text without the line breaks of its page."""
    return re.sub(r"\s+", " ", text)


@pytest.fixture(scope="module")
def told() -> str:
    """All pages."""
    return " ".join(folded(page.read_text(encoding="utf-8")) for page in PAGES)


def test_every_message_is_on_a_page(told: str) -> None:
    messages = [message for source in SOURCES for message in messages_of(source)]
    assert len(messages) > 300
    absent = [
        str(message)
        for message in messages
        if len(message.longest) >= LEAST and folded(message.longest) not in told
    ]
    assert absent == []


SOURCE = """
_CONSTANT = "a constant"

def function(value: Any) -> None:
    text = f"{value}: a text" if value else "another text"
    refuse("field", value, f"right, as {value} is not")
    raise ConfigurationError("one" "piece")
    raise ConfigurationError(_CONSTANT)
    raise errors.DriverError(text, outcome="unknown")
    raise UnsupportedError(name, "capability", "a hint")
    raise ConflictError(str(error))
    yield Finding("error", f"{value} is bad")
    Unrelated("text")
"""


def test_messages_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "module.py"
    source.write_text(SOURCE)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    found: list[Any] = [message.pieces for message in messages_of(source)]
    assert found == [
        ["right, as ", " is not"],
        ["onepiece"],
        ["a constant"],
        ["", ": a text"],
        ["another text"],
        ["a hint"],
        ["", " is bad"],
    ]
