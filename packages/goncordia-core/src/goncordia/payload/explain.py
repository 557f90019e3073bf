"""What an encoder or decoder complained about, in words that hold no value of the user's.

Messages of msgspec and pydantic quote what they could not read, and exceptions raised in a class's
own ``__post_init__`` may say anything. Only paths, types and fixed phrases of the libraries pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, get_args

import msgspec

from goncordia.payload.fields import children, field_names, is_class

__all__ = ["explain", "failing_part"]

_PATH: Final = re.compile(r" - at `((?:key in )?\$[^`]*)`$")
# These go on with types and with what the class asks for.
_SAFE: Final = ("Expected ", "Object missing required field ")
# These may go on with the value.
_PHRASES: Final = (
    "Integer value out of range",
    "Invalid ISO8601 duration",
    "Invalid RFC3339 encoded date",
    "Invalid RFC3339 encoded datetime",
    "Invalid RFC3339 encoded time",
    "Invalid UUID",
    "Invalid base64 encoded string",
    "Invalid decimal string",
    "Invalid enum value",
    "Number out of range",
    "Object contains unknown field",
)
_DEEP: Final = 100


def explain(error: BaseException, cls: Any) -> str:
    """The path and what is wrong there.

    Args:
        error: what encoding or decoding raised.
        cls: the class that was encoded or decoded.
    """
    if isinstance(error, msgspec.ValidationError):
        return _of_msgspec(error)
    if isinstance(error, msgspec.DecodeError):
        # Malformed text: the library says where, by byte.
        return str(error)
    if isinstance(error, UnicodeEncodeError):
        return "text with a lone surrogate, which UTF-8 cannot hold"
    if isinstance(error, UnicodeDecodeError):
        return "Invalid UTF-8 encoded string"
    if isinstance(error, RecursionError):
        return "nested too deep, or in a circle"
    if type(error).__module__.startswith("pydantic") and hasattr(error, "errors"):
        return _of_pydantic(error, cls)
    return f"refused by {type(error).__qualname__}"


def failing_part(value: object, fails: Callable[[object], bool]) -> tuple[str, object]:
    """The path of the smallest part that fails, and that part.

    Args:
        value: what failed as a whole.
        fails: says whether a part of it fails on its own.
    """
    path = "$"
    for _ in range(_DEEP):
        for step, part in children(value):
            if fails(part):
                path, value = path + step, part
                break
        else:
            break
    return path, value


def _of_msgspec(error: msgspec.ValidationError) -> str:
    text = str(error)
    path = "$"
    if found := _PATH.search(text):
        path, text = found[1], text[: found.start()]
    if error.__cause__ is not None:
        # Raised by the class itself: its words are the user's own.
        return f"{path}: refused by {type(error.__cause__).__qualname__}"
    if text.startswith(_SAFE):
        return f"{path}: {text}"
    # The longest that fits: "datetime" before "date".
    phrase = max(
        (known for known in _PHRASES if text.startswith(known)), key=len, default="invalid"
    )
    return f"{path}: {phrase}"


def _of_pydantic(error: Any, cls: Any) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    models: list[Any] = [cls]
    path = "$"
    for step in first["loc"]:
        if isinstance(step, int):
            path += f"[{step}]"
            continue
        annotations = [
            fields[step].annotation
            for model in models
            if step in (fields := getattr(model, "__pydantic_fields__", {}))
        ]
        # A step that is no field's name is a key of a dict, or a branch of a union.
        path += f".{step}" if annotations else "[...]"
        if annotations:
            models = [model for annotation in annotations for model in _models_in(annotation)]
    return f"{path}: {first['type']}"


def _models_in(annotation: Any) -> list[Any]:
    if is_class(annotation) and field_names(annotation) is not None:
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]
