"""Servers for tests: of their own, gone with those who needed them, shared within a run."""
