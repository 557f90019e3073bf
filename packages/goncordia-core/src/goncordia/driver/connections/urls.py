"""URLs of servers, of which there may be several."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult

__all__ = ["split_url"]

_PARTS: Final = re.compile(
    r"(?P<scheme>[^:/?#]+)://(?P<netloc>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?",
    re.DOTALL,
)
_BRACKETS: Final = re.compile(r"\[(?P<address>[^\[\]]*)\](?::.*)?", re.DOTALL)


def split_url(url: str) -> SplitResult:
    """As ``urllib.parse.urlsplit``, which refuses an IPv6 address that is not the first host.

    Which Pythons' do differs with their security updates.

    Raises:
        ValueError: it has no scheme, or there are brackets with no IPv6 address in them.
    """
    found = _PARTS.fullmatch(url)
    if found is None:
        raise ValueError("a URL begins with a scheme and '://'")
    netloc = found["netloc"]
    for host in netloc.rpartition("@")[2].split(","):
        if "[" in host or "]" in host:
            inside = _BRACKETS.fullmatch(host)
            ipaddress.IPv6Address(inside["address"] if inside else host)
    query, fragment = found["query"] or "", found["fragment"] or ""
    return SplitResult(found["scheme"].lower(), netloc, found["path"], query, fragment)
