"""Goncordia on Redis and Valkey.

``RedisDriver`` takes a URL, or a client of redis-py: for one server, a Sentinel's primary or a
cluster.
"""

from goncordia_driver_redis.driver import RedisDriver

__all__ = ["RedisDriver"]
