"""Whether what is stored fits this code."""

from __future__ import annotations

from goncordia.errors import MigrationRequiredError
from goncordia_driver_redis.operations import LAYOUT, Layout, Op, Operations

__all__ = ["migrate", "verify"]


def verify(operations: Operations, prefix: str) -> Op[None]:
    """Check the stored layout.

    Raises:
        MigrationRequiredError: there is none, or it is older than the code, or too new.
    """
    found = yield from operations.schema_read()
    if found is None:
        raise MigrationRequiredError(
            f"under the prefix {prefix!r} nothing of Goncordia is stored: run migrate() or "
            "`goncordia migrate`"
        )
    _refuse_newer(found, prefix)
    if found.version < LAYOUT:
        raise MigrationRequiredError(
            f"what is stored under the prefix {prefix!r} has version {found.version}, and this "
            f"code needs {LAYOUT}: run migrate() or `goncordia migrate`"
        )


def migrate(operations: Operations, prefix: str) -> Op[list[str]]:
    """Bring the layout up to date; what was done, a line each.

    Raises:
        MigrationRequiredError: it is newer than this code.
    """
    found = yield from operations.schema_read()
    if found is not None:
        _refuse_newer(found, prefix)
    before = yield from operations.schema_write()
    if before >= LAYOUT:
        return []
    return [f"version {LAYOUT} under the prefix {prefix!r}"]


def _refuse_newer(found: Layout, prefix: str) -> None:
    if found.oldest > LAYOUT:
        raise MigrationRequiredError(
            f"what is stored under the prefix {prefix!r} has version {found.version}, and needs "
            f"code that knows version {found.oldest}; this code knows {LAYOUT}: update it"
        )
