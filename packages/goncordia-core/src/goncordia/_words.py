"""Words of messages."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: int, one: str, many: str | None = None) -> str:
    """So many of something, such as ``1 job`` or ``2 jobs``; ``many``: where an s does not do."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"
