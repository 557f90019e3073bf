"""Args, outputs and checkpoints as JSON text.

Args are proved as they are encoded: what decoding gives is compared with what was given, so a job
never runs with other args than were enqueued. ``CONTENT_JSON`` names this form in the stored job;
a codec that stores something else (encrypted, compressed) takes what is encoded here and has a name
of its own.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final
from uuid import UUID

from goncordia.errors import PayloadError
from goncordia.payload.difference import difference
from goncordia.payload.explain import explain, failing_part
from goncordia.payload.fields import children
from goncordia.payload.plans import Plan, decoder, dump, known_plans, plan_of

__all__ = [
    "CONTENT_JSON",
    "MAX_ARGS",
    "MAX_OUTPUT",
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
        raise _not_encoded(args, plan, error) from None  # the cause would quote values
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
    plan = known_plans.get(cls) or plan_of(cls)
    try:
        return plan.load(text)
    except Exception as error:  # noqa: BLE001 - a user's own hooks may raise anything
        told = f"the stored args do not fit {plan.cls!r}: {explain(error, cls)}"
        raise PayloadError(told, kind=plan.kind, job_id=job_id) from None


def encode_value(value: object, *, what: str, limit: int = MAX_OUTPUT) -> bytes:
    """JSON of an output or a checkpoint: anything that msgspec or pydantic can encode.

    Args:
        value: what to encode.
        what: ``"output"`` or ``"checkpoint"``, for the error.
        limit: the most bytes that are allowed.

    Raises:
        PayloadError: it has no JSON form, holds NaN or Infinity, or is too large.
    """
    try:
        text = dump(value)
    except Exception as error:  # noqa: BLE001 - a user's own hooks may raise anything
        path, part = failing_part(value, _fails)
        told = f"{path}: {type(part).__qualname__}: {explain(error, type(value))}"
        raise PayloadError(f"{what}: {told}") from None
    if len(text) > limit:
        raise PayloadError(f"{what}: {len(text)} bytes are more than the limit of {limit}")
    # NaN and Infinity are no JSON and become null: only then is it worth while to look for one.
    if b"null" in text:
        path, part = failing_part(value, _holds_nonfinite)
        if _is_nonfinite(part):
            raise PayloadError(f"{what}: {path}: NaN and Infinity have no JSON form")
    return text


def decode_value(cls: Any, text: bytes, *, what: str) -> Any:
    """An output or a checkpoint as that type.

    Args:
        cls: any type that msgspec or pydantic knows; ``Any``: plain JSON.
        text: what :func:`encode_value` gave.
        what: ``"output"`` or ``"checkpoint"``, for the error.

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
        raise PayloadError(f"{what} does not fit {cls!r}: {explain(error, cls)}") from None


_decoder = functools.lru_cache(maxsize=512)(decoder)


def _not_encoded(args: object, plan: Plan, error: Exception) -> PayloadError:
    path, part = failing_part(args, _fails)
    told = f"{path}: {type(part).__qualname__}: {explain(error, type(args))}"
    return PayloadError(f"{type(args).__qualname__} cannot be encoded: {told}", kind=plan.kind)


def _fails(value: object) -> bool:
    try:
        dump(value)
    except Exception:  # noqa: BLE001 - that it fails is all that is asked
        return True
    return False


def _is_nonfinite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _holds_nonfinite(value: object) -> bool:
    return _is_nonfinite(value) or any(_holds_nonfinite(part) for _, part in children(value))
