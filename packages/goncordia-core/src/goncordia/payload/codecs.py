"""Codecs: what args become on their way to the backend, such as encrypted or compressed.

The JSON text is made and proved first, so that unique keys and the guarantee of equal args do not
depend on the codec; then the codec's own round trip is proved. Its name is stored with the job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable
from uuid import UUID

from goncordia import _check
from goncordia.errors import CodecError, ConfigurationError, PayloadError
from goncordia.payload.codec import CONTENT_JSON

__all__ = ["Codec", "checked_codec", "checked_codecs", "decoded", "encoded"]

_MAX_NAME: Final = 64
_RIGHT: Final = "a Codec: a name, encode(kind, text) and decode(kind, stored)"


@runtime_checkable
class Codec(Protocol):
    """Turns the JSON text of args into what is stored, and back.

    A class with these three members is one. Its methods are called often, in the event loop and in
    threads; they must not block for long.
    """

    @property
    def name(self) -> str:
        """Stored with each job, and how a worker finds the codec; not ``"json"``."""
        ...

    def encode(self, kind: str, text: bytes, /) -> bytes:
        """What is stored.

        Args:
            kind: the kind of the job; bind the result to it where that makes sense.
            text: the args as JSON in UTF-8.
        """
        ...

    def decode(self, kind: str, stored: bytes, /) -> bytes:
        """The text, byte for byte; raises anything when it cannot be had."""
        ...


def checked_codec(field: str, codec: Any) -> Codec:
    """The codec, if it is one.

    Raises:
        ConfigurationError: it is none, or its name is wrong.
    """
    if isinstance(codec, type) or not isinstance(codec, Codec):
        _check.refuse(field, codec, _RIGHT)
    if _check.name(f"{field}: name", codec.name, longest=_MAX_NAME) == CONTENT_JSON:
        raise ConfigurationError(f"{field}: name: {CONTENT_JSON!r} is taken; choose another")
    return codec


def checked_codecs(field: str, codecs: Codec | Sequence[Codec]) -> Mapping[str, Codec]:
    """One codec or several, by name; the first one encodes.

    Raises:
        ConfigurationError: one is none, or two have one name.
    """
    found: dict[str, Codec] = {}
    given: Sequence[Any] = [codecs] if isinstance(codecs, Codec) else _sequence(field, codecs)
    for index, item in enumerate(given):
        codec = checked_codec(f"{field}[{index}]", item)
        if codec.name in found:
            raise ConfigurationError(f"{field}[{index}]: a second codec is named {codec.name!r}")
        found[codec.name] = codec
    return found


def _sequence(field: str, given: object) -> Sequence[object]:
    return _check.sequence(field, given, f"{_RIGHT}; or a sequence of such")


def encoded(codec: Codec, kind: str, text: bytes, limit: int) -> bytes:
    """What is stored, proved to come back.

    Raises:
        CodecError: the codec failed, or what it made does not come back.
        PayloadError: it is too large.
    """
    try:
        stored: Any = codec.encode(kind, text)
        same = isinstance(stored, bytes) and codec.decode(kind, stored) == text
    except Exception as error:
        raise CodecError(
            f"codec {codec.name!r} failed to encode: {type(error).__name__}", kind=kind
        ) from error
    if not same:
        raise CodecError(f"codec {codec.name!r}: what it encodes does not come back", kind=kind)
    done: bytes = stored
    if len(done) > limit:
        raise PayloadError(
            f"{len(done)} bytes of args by codec {codec.name!r} are more than the limit of {limit}",
            kind=kind,
        )
    return done


def decoded(codec: Codec, kind: str, stored: bytes, job_id: UUID) -> bytes:
    """The text that was encoded.

    Raises:
        CodecError: the codec failed; the key may come with a later deploy.
    """
    try:
        return codec.decode(kind, stored)
    except Exception as error:
        raise CodecError(
            f"codec {codec.name!r} failed to decode the stored args: {type(error).__name__}",
            kind=kind,
            job_id=job_id,
        ) from error
