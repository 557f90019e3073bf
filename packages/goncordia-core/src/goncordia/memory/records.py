"""Records: small values, changed by compare-and-swap."""

from __future__ import annotations

from goncordia.driver.results import PutResult
from goncordia.driver.values import Record

__all__ = ["Records"]


class Records:
    """All records of the store."""

    def __init__(self) -> None:
        self._records: dict[str, tuple[Record, bytes]] = {}
        self._version = 0

    def get(self, name: str) -> Record | None:
        """The record, or None."""
        found = self._records.get(name)
        return None if found is None else found[0]

    def put(self, name: str, value: bytes | None, expected: int, token: bytes) -> PutResult:
        """Write or delete the record if its version is the expected one."""
        found = self._records.get(name)
        if found is not None and found[1] == token:
            return PutResult(done=True, version=found[0].version)
        version = 0 if found is None else found[0].version
        if found is None and value is None:
            return PutResult(done=True, version=0)
        if version != expected:
            return PutResult(done=False, version=version)
        if value is None:
            del self._records[name]
            return PutResult(done=True, version=0)
        # One count for all names: a version never comes again, not even after a deletion.
        self._version += 1
        self._records[name] = (Record(name, value, self._version), token)
        return PutResult(done=True, version=self._version)

    def list_by(self, prefix: str) -> list[Record]:
        """The records whose names start so, by name."""
        names = sorted(name for name in self._records if name.startswith(prefix))
        return [self._records[name][0] for name in names]
