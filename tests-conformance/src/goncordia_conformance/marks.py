"""The words in which a test says what it proves, and on what condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

import pytest

from goncordia.driver import Capabilities

__all__ = [
    "MISSING",
    "NOT_APPLICABLE",
    "NOT_CLAIMED",
    "NOT_PROVED",
    "RULES",
    "Rule",
    "both_ways",
    "lacks",
    "needs",
    "not_proved",
    "rule",
    "unmet",
]

NOT_PROVED: Final = "NOT PROVED"
"""How the reason of a skip begins when something to prove it with is missing."""

NOT_APPLICABLE: Final = "NOT APPLICABLE"
"""How it begins when the driver's author switched the test off."""

NOT_CLAIMED: Final = "not claimed"
"""How it begins when the driver does not claim the capability."""

MISSING: Final = "MISSING BACKEND"
"""How it begins when there is no backend to run on."""

Rule: TypeAlias = int | str
"""One of the contract's fourteen rules, or one of its tables and methods by name."""

RULES: Final[Mapping[Rule, str]] = {
    1: "order",
    2: "one claim",
    3: "fencing",
    4: "sessions",
    5: "time is the backend's",
    6: "uniqueness",
    7: "groups",
    8: "fetch stays flat",
    9: "replay",
    10: "payload fidelity",
    11: "errors",
    12: "nothing is owned that was passed in",
    13: "migrations",
    14: "capabilities are true",
    "states": "the tables of states, finishes and changes",
    "records": "records",
    "listing": "looking: get, list, count, stats, prune",
    "queues": "pausing queues",
    "whole": "everything together: state machine, pools, crashes",
}

Function = TypeVar("Function", bound=Callable[..., Any])

both_ways = pytest.mark.parametrize("claim_by", ["exchange", "fetch"])
"""Run the test twice: claiming by ``exchange``, as the engine does, and by ``fetch``."""


def rule(*numbers: Rule) -> pytest.MarkDecorator:
    """The rules that a test proves.

    Raises:
        ValueError: there is no such rule.
    """
    if unknown := set(numbers) - set(RULES):
        raise ValueError(f"rule: {sorted(map(str, unknown))} are not among {list(RULES)}")
    return pytest.mark.rule(*numbers)


@dataclass(frozen=True)
class _Condition:
    name: str
    value: object
    on: bool


def needs(*flags: str, **values: object) -> Callable[[Function], Function]:
    """The test proves claimed capabilities; without them it is skipped.

    Args:
        flags: capabilities that must be on.
        values: capabilities that must have this value.
    """
    wanted = [_Condition(flag, True, on=True) for flag in flags]
    wanted += [_Condition(name, value, on=True) for name, value in values.items()]
    return _conditions(wanted)


def lacks(*flags: str) -> Callable[[Function], Function]:
    """The test proves what happens without a capability; with it, it is skipped."""
    return _conditions([_Condition(flag, True, on=False) for flag in flags])


def _conditions(conditions: list[_Condition]) -> Callable[[Function], Function]:
    if unknown := {c.name for c in conditions} - set(Capabilities.__struct_fields__):
        raise ValueError(f"there are no capabilities {sorted(unknown)}")

    def decorate(function: Function) -> Function:
        mark: Callable[[Function], Function] = pytest.mark.goncordia_needs(*conditions)
        return mark(function)

    return decorate


def unmet(marks: Iterator[pytest.Mark], capabilities: Capabilities) -> str | None:
    """Why a test with these marks does not apply to a driver; None if it does."""
    for mark in marks:
        for condition in mark.args:
            have = getattr(capabilities, condition.name)
            on = have not in {False, "none"} if condition.value is True else have == condition.value
            if on != condition.on:
                return f"{NOT_CLAIMED if condition.on else 'claimed'}: {condition.name} = {have!r}"
    return None


def not_proved(what: str, missing: str) -> NoReturn:
    """Skip the test, and have it listed at the end of the run.

    Args:
        what: what stays unproved.
        missing: what the driver's author would have to provide.
    """
    pytest.skip(f"{NOT_PROVED}: {what}: {missing}")
