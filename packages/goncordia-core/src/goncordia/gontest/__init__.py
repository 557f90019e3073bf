"""Helpers for tests of code that uses Goncordia."""

from goncordia.gontest.clock import MockClock

__all__ = ["MockClock"]
