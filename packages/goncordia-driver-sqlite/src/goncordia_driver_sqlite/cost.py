"""What an operation costs, without a clock: for tests that prove a cost flat."""

from __future__ import annotations

__all__ = ["StepCounter"]


class StepCounter:
    """Counts the instructions that SQLite's virtual machine runs.

    An instruction is what SQLite does with one row, one index entry, or less; so the count grows
    with all that a statement looks at, and not with the machine's speed.

    Attributes:
        steps: so far.
    """

    def __init__(self) -> None:
        self.steps = 0

    def tick(self) -> int:
        """One instruction; 0 tells SQLite to go on."""
        self.steps += 1
        return 0
