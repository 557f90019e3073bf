"""Benchmarks of Goncordia and its peers, side by side in one run."""
