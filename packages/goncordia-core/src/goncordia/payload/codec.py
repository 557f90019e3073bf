"""Args, outputs and checkpoints as JSON text.

Args are proved as they are encoded: what decoding gives is compared with what was given, so a job
never runs with other args than were enqueued. ``CONTENT_JSON`` names this form in the stored job;
a codec that stores something else (encrypted, compressed) takes what is encoded here and has a name
of its own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from goncordia.errors import PayloadError
from goncordia.payload.difference import difference
from goncordia.payload.explain import explain, failing_part
from goncordia.payload.fields import children
from goncordia.payload.plans import decoder, dump, known_plans, plan_of

__all__ = [
    "CONTENT_JSON",
    "MAX_ARGS",
    "MAX_OUTPUT",
    "args_decoder",
    "decode_args",
    "decode_value",
    "encode_args",
    "encode_value",
]

CONTENT_JSON: Final = "json"
"""The name of JSON text in UTF-8, as stored with the job."""

MAX_ARGS: Final = 1024 * 1024
"""The most bytes that args may have, unless the client says otherwise."""

MAX_OUTPUT: Final = 64 * 1024
"""The most bytes that an output or a checkpoint may have."""


def encode_args(args: object, *, limit: int = MAX_ARGS) -> bytes:
    """JSON of an args object, proved to come back equal field by field.

    Args:
        args: an instance of an args class.
        limit: the most bytes that are allowed.

    Raises:
        PayloadError: it would not come back equal, cannot be encoded, or is too large. The message
            has the path and the types, never a value.
        ConfigurationError: its class is no args class.
    """
    cls = type(args)
    plan = known_plans.get(cls) or plan_of(cls)
    try:
        text = plan.dump(args)
    except Exception as error:  # noqa: BLE001 - a user's own hooks may raise anything
        told = f"{cls.__qualname__}: {_unencodable(args, error)}"
        raise PayloadError(told, kind=plan.kind) from None  # the cause would quote values
    if len(text) > limit:
        raise PayloadError(
            f"{cls.__qualname__}: {len(text)} bytes of args are more than the limit of {limit}",
            kind=plan.kind,
        )
    try:
        back = plan.load(text)
    except Exception as error:  # noqa: BLE001 - as above
        told = f"{cls.__qualname__} would not come back: {explain(error, cls)}"
        raise PayloadError(told, kind=plan.kind) from None
    try:
        same = plan.same(args, back)
    except Exception:  # noqa: BLE001 - a field that is unset, or cannot be compared
        same = False
    if not same and (found := difference(args, back)):
        raise PayloadError(f"{cls.__qualname__}: {found}", kind=plan.kind)
    return text


def args_decoder(cls: Any) -> Callable[[bytes, UUID | None], Any]:
    """A function of the stored args and the job's id, as :func:`decode_args`.

    Raises:
        ConfigurationError: it is no args class.
    """
    plan = known_plans.get(cls) or plan_of(cls)
    load = plan.load

    def decode(text: bytes, job_id: UUID | None) -> Any:
        try:
            return load(text)
        except Exception as error:  # noqa: BLE001 - a user's own hooks may raise anything
            told = f"the stored args do not fit {_name_of(cls)}: {explain(error, cls)}"
            raise PayloadError(told, kind=plan.kind, job_id=job_id) from None

    return decode


def decode_args(cls: Any, text: bytes, *, job_id: UUID | None = None) -> Any:
    """The args object that was encoded.

    Args:
        cls: the args class.
        text: what :func:`encode_args` gave, by this version of the class or another.
        job_id: the job's id, for the error.

    Raises:
        PayloadError: it does not fit the class (any more).
        ConfigurationError: it is no args class.
    """
    return args_decoder(cls)(text, job_id)


def encode_value(
    value: object,
    *,
    what: str,
    limit: int = MAX_OUTPUT,
    kind: str | None = None,
    job_id: UUID | None = None,
) -> bytes:
    """JSON of an output or a checkpoint: anything that msgspec or pydantic can encode.

    Args:
        value: what to encode.
        what: ``"output"`` or ``"checkpoint"``, for the error.
        limit: the most bytes that are allowed.
        kind: the job's kind, for the error.
        job_id: the job's id, for the error.

    Raises:
        PayloadError: it has no JSON form, holds NaN or Infinity, or is too large.
    """
    try:
        text = dump(value)
    except Exception as error:  # noqa: BLE001 - a user's own hooks may raise anything
        told = _unencodable(value, error)
    else:
        if len(text) > limit:
            told = f"{len(text)} bytes are more than the limit of {limit}"
        # NaN and Infinity are no JSON and become null: only then is it worth while to look for one.
        elif b"null" in text and (path := _path_of_nonfinite(value)):
            told = f"{path}: NaN and Infinity have no JSON form"
        else:
            return text
    raise PayloadError(f"{what}: {told}", kind=kind, job_id=job_id)


def decode_value(
    cls: Any, text: bytes, *, what: str, kind: str | None = None, job_id: UUID | None = None
) -> Any:
    """An output or a checkpoint as that type.

    Args:
        cls: any type that msgspec or pydantic knows; ``Any``: plain JSON.
        text: what :func:`encode_value` gave.
        what: ``"output"`` or ``"checkpoint"``, for the error.
        kind: the job's kind, for the error.
        job_id: the job's id, for the error.

    Raises:
        PayloadError: it does not fit the type.
        ConfigurationError: the type cannot be decoded.
    """
    try:
        load = _decoder(cls, what)
    except TypeError:  # a type that cannot be hashed
        load = decoder(cls, what)
    try:
        return load(text)
    except Exception as error:  # noqa: BLE001 - a user's own hooks may raise anything
        told = f"the stored {what} does not fit {_name_of(cls)}: {explain(error, cls)}"
        raise PayloadError(told, kind=kind, job_id=job_id) from None


_decoder = functools.lru_cache(maxsize=512)(decoder)


def _unencodable(value: object, error: Exception) -> str:
    path, part = failing_part(value, _fails)
    if type(error) is TypeError:
        return f"{path}: {type(part).__qualname__} has no JSON form"
    return f"{path}: {type(part).__qualname__}: {explain(error, type(value))}"


def _fails(value: object) -> bool:
    try:
        dump(value)
    except Exception:  # noqa: BLE001 - that it fails is all that is asked
        return True
    return False


def _path_of_nonfinite(value: object) -> str | None:
    path, part = failing_part(value, _holds_nonfinite)
    return path if _is_nonfinite(part) else None


def _is_nonfinite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _holds_nonfinite(value: object) -> bool:
    return _is_nonfinite(value) or any(_holds_nonfinite(part) for _, part in children(value))


def _name_of(cls: Any) -> str:
    return cls.__qualname__ if isinstance(cls, type) else str(cls)
