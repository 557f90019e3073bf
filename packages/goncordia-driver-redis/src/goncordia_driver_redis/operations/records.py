"""Records: small values, changed by compare-and-swap."""

from __future__ import annotations

from typing import Any, Final

from goncordia.driver import PutResult, Record
from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.operations.base import Topic
from goncordia_driver_redis.operations.call import Argument, Op

__all__ = ["Records"]

_GET: Final = load_script("record_get")
_PUT: Final = load_script("record_put")
_LIST: Final = load_script("record_list")
_LISTED: Final = 50


class Records(Topic):
    """One hash for each, and a sorted set of their names."""

    def record_get(self, name: str) -> Op[Record | None]:
        """See :meth:`BaseExecutor.record_get`."""

        def parse(answer: Any) -> Record | None:
            value, version = answer
            return None if version is None else Record(name, value, int(version))

        record: Record | None = yield self._call(_GET, parse, name)
        return record

    def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes
    ) -> Op[PutResult]:
        """See :meth:`BaseExecutor.record_put`."""
        arguments: list[Argument] = [name, expected_version, token]
        if value is not None:
            arguments.append(value)
        result: PutResult = yield self._call_with(_PUT, _read_put, arguments)
        return result

    def record_list(self, prefix: str) -> Op[list[Record]]:
        """See :meth:`BaseExecutor.record_list`."""
        records: list[Record] = []
        # No name has the byte 255, for none is in UTF-8; so all with the prefix come before it.
        least, most = b"[" + prefix.encode(), b"(" + prefix.encode() + b"\xff"
        while True:
            some: list[Record] = yield self._call(_LIST, _read_list, least, most, _LISTED)
            records += some
            if len(some) < _LISTED:
                return records
            least = b"(" + some[-1].name.encode()


def _read_put(answer: Any) -> PutResult:
    done, version = answer
    return PutResult(done=done == 1, version=version)


def _read_list(answer: Any) -> list[Record]:
    triples = zip(answer[::3], answer[1::3], answer[2::3], strict=True)
    return [Record(name.decode(), value, int(version)) for name, value, version in triples]
