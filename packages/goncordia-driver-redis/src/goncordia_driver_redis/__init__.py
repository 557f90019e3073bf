"""Goncordia on Redis and Valkey."""
