"""Page cursors as users hold them: short URL-safe strings, bound to the list that gave them.

A driver's own cursor is any bytes. Around them go a version and a checksum over the filter, the
driver's name and the bytes, so that a cursor that was cut short, changed, or belongs to another
list is refused instead of giving a wrong page.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Final

import msgspec

from goncordia.driver import ListFilter
from goncordia.errors import InvalidCursorError

__all__ = ["decode", "encode"]

_VERSION: Final = b"\x01"
_CHECKSUM: Final = 9  # with the version ten bytes
_LONGEST: Final = 1 << 14


def _checksum(page: bytes, where: ListFilter, driver: str) -> bytes:
    bound = msgspec.json.encode((driver, where), order="sorted")
    digest = hashlib.blake2b(digest_size=_CHECKSUM, person=b"goncordia.page")
    digest.update(len(bound).to_bytes(8))
    digest.update(bound)
    digest.update(page)
    return digest.digest()


def encode(page: bytes, where: ListFilter, driver: str) -> str:
    """The cursor for a driver's page."""
    token = _VERSION + _checksum(page, where, driver) + page
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def decode(cursor: object, where: ListFilter, driver: str) -> bytes:
    """The driver's page of a cursor.

    Raises:
        InvalidCursorError: it is no cursor, or it was given by another list.
    """
    if not isinstance(cursor, str) or not cursor or len(cursor) > _LONGEST:
        raise InvalidCursorError("cursor: not one that list() gave")
    try:
        token = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidCursorError("cursor: not one that list() gave") from error
    head, page = token[: 1 + _CHECKSUM], token[1 + _CHECKSUM :]
    if len(head) != 1 + _CHECKSUM or head[:1] != _VERSION:
        raise InvalidCursorError("cursor: not one that list() gave")
    if encode(page, where, driver) != cursor:
        raise InvalidCursorError(
            "cursor: given by a list with another filter or driver, or changed since"
        )
    return page
