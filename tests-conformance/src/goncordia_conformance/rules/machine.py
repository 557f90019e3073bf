"""The state machine against the memory driver as the model."""

from __future__ import annotations

from typing import ClassVar, cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import MakeDriver
from goncordia_conformance.machine import Arena, Machine
from goncordia_conformance.marks import not_proved
from goncordia_conformance.rules.transactions import Transaction

__all__ = ["StateMachineTests"]


class StateMachineTests(Conformance, rule="whole"):
    """Every answer of the driver is one that the model allows, step by step.

    Attributes:
        machine_settings: how long Hypothesis looks. Whether it takes the same runs each time is
            for the profile to say that is loaded (``derandomize``).
    """

    machine_settings: ClassVar[settings] = settings(
        max_examples=100,
        stateful_step_count=50,
        deadline=None,
        # Without `explain`, which takes long and says little about a driver.
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.filter_too_much,
        ],
    )

    @pytest.fixture
    def transaction(self) -> Transaction:
        """For the driver's author: see ``TransactionTests``."""
        not_proved("native_tx", "no fixture transaction")

    @pytest.fixture
    def arena(self, make_driver: MakeDriver, request: pytest.FixtureRequest) -> Arena:
        """Where the machine runs."""
        transaction: Transaction | None = None
        if make_driver().capabilities.native_tx != "none":
            try:
                transaction = request.getfixturevalue("transaction")
            except pytest.skip.Exception:
                transaction = None  # said by the tests of transactions
        return Arena(make_driver, transaction)

    @pytest.mark.goncordia_slow_to_fail
    def test_state_machine(self, arena: Arena) -> None:
        def machine() -> Machine:
            return Machine(arena)

        # This class was made before any profile was loaded.
        same = settings().derandomize or self.machine_settings.derandomize
        try:
            run_state_machine_as_test(
                cast(type[RuleBasedStateMachine], machine),
                settings=settings(self.machine_settings, derandomize=same),
            )
        finally:
            arena.close()
