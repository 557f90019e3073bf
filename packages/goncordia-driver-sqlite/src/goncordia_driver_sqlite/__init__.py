"""Goncordia's SQLite driver."""
