"""Upcasters: args of an older version, brought up to the one that the worker understands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec

from goncordia.errors import PayloadError
from goncordia.payload.codec import MAX_ARGS, encode_value

__all__ = ["Upcaster", "upcast"]

Upcaster: TypeAlias = Callable[[Any], Any]
"""From the args of one version, as plain JSON data, to those of the next."""

_decode: Final = msgspec.json.Decoder().decode


def upcast(
    upcasters: Mapping[int, Upcaster],
    text: bytes,
    *,
    version: int,
    kind: str,
    job_id: UUID,
) -> bytes:
    """The text of the newest version.

    Args:
        upcasters: by the version that they start from; one that is missing changes nothing.
        text: the stored args.
        version: theirs.
        kind: the job's kind, for the error.
        job_id: the job's id, for the error.

    Raises:
        PayloadError: an upcaster failed, or gave what has no JSON form.
    """
    steps = sorted(start for start in upcasters if start >= version)
    if not steps:
        return text
    try:
        data = _decode(text)
    except msgspec.DecodeError:
        raise PayloadError("the stored args are no JSON", kind=kind, job_id=job_id) from None
    for start in steps:
        try:
            data = upcasters[start](data)
        except Exception as error:
            raise PayloadError(
                f"the upcaster from version {start} raised {type(error).__name__}",
                kind=kind,
                job_id=job_id,
            ) from error
    return encode_value(data, what="upcast args", limit=MAX_ARGS, kind=kind, job_id=job_id)
