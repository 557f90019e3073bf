"""The worker pool: what a user starts to have jobs worked."""

from goncordia.pool.pool import WorkerPool

__all__ = ["WorkerPool"]
