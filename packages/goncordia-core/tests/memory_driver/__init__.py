"""Tests of the memory driver and its store."""
