from __future__ import annotations

from typing import Any

from goncordia.driver import PutResult, Record

T1, T2, T3 = (bytes([n] * 16) for n in (1, 2, 3))


def put(bare: Any, name: str, value: bytes | None, expected: int, token: bytes) -> PutResult:
    answer: PutResult = bare.run(bare.ops.records.record_put(name, value, expected, token))
    return answer


def test_a_version_never_comes_again(bare: Any) -> None:
    seen = [put(bare, "a", b"1", 0, T1).version]
    seen.append(put(bare, "a", b"2", seen[-1], T2).version)
    assert put(bare, "a", None, seen[-1], T3) == PutResult(done=True, version=0)
    seen.append(put(bare, "a", b"1", 0, T1).version)
    seen.append(put(bare, "b", b"1", 0, T1).version)
    assert len(set(seen)) == 4


def test_only_the_expected_version_is_replaced(bare: Any) -> None:
    first = put(bare, "a", b"1", 0, T1)
    assert put(bare, "a", b"2", 0, T2) == PutResult(done=False, version=first.version)
    assert put(bare, "a", None, 99, T2) == PutResult(done=False, version=first.version)
    assert put(bare, "b", b"2", 7, T2) == PutResult(done=False, version=0)
    assert bare.run(bare.ops.records.record_get("a")) == Record("a", b"1", first.version)
    assert bare.run(bare.ops.records.record_get("b")) is None


def test_the_same_token_again_changes_nothing(bare: Any) -> None:
    first = put(bare, "a", b"1", 0, T1)
    assert put(bare, "a", b"other", 0, T1) == first
    assert put(bare, "a", None, first.version, T2).done
    assert put(bare, "a", None, first.version, T2) == PutResult(done=True, version=0)


def test_a_prefix_is_taken_literally(bare: Any) -> None:
    for name in ("a/1", "a/2", "A/3", "a%", "a_b", "ab", "ü/1"):
        put(bare, name, b"", 0, T1)
    listed = {
        prefix: [record.name for record in bare.run(bare.ops.records.record_list(prefix))]
        for prefix in ("a/", "a%", "a_", "", "ü")
    }
    assert listed["a/"] == ["a/1", "a/2"]
    assert (listed["a%"], listed["a_"], listed["ü"]) == (["a%"], ["a_b"], ["ü/1"])
    assert len(listed[""]) == 7
