"""Tests of what the contract's base classes do for a driver with only the ten methods."""
