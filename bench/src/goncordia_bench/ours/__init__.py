"""Goncordia, as each workload uses it."""
