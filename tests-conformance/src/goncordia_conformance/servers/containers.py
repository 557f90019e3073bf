"""Servers for tests in containers, where Docker runs; needs the extra ``testcontainers``."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testcontainers.community.postgres import PostgresContainer
    from testcontainers.community.redis import RedisContainer

__all__ = ["postgres_container", "redis_container"]


@contextmanager
def postgres_container(major: int, settings: Mapping[str, str]) -> Generator[str, None, None]:
    """Run PostgreSQL of this version in a container, for as long as it is needed.

    Args:
        major: its version, such as 18.
        settings: as in ``postgresql.conf``.
    """
    with describe_postgres(major, settings) as container:
        yield container.get_connection_url(host=container.get_container_host_ip())


def describe_postgres(major: int, settings: Mapping[str, str]) -> PostgresContainer:
    """The container, not yet started."""
    from testcontainers.community.postgres import PostgresContainer

    container = PostgresContainer(
        f"postgres:{major}",
        username="postgres",
        password="postgres",  # noqa: S106 - of a server that is thrown away
        dbname="postgres",
        driver=None,
    )
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return container.with_command(["postgres", *words])


@contextmanager
def redis_container(flavour: str, version: str) -> Generator[str, None, None]:
    """Run Redis or Valkey of this version in a container, for as long as it is needed.

    Args:
        flavour: ``redis`` or ``valkey``.
        version: such as ``7.4``.
    """
    with describe_redis(flavour, version) as container:
        host, port = container.get_container_host_ip(), container.get_exposed_port(6379)
        yield f"redis://{host}:{port}/0"


def describe_redis(flavour: str, version: str) -> RedisContainer:
    """The container, not yet started."""
    from testcontainers.community.redis import RedisContainer

    image = f"valkey/valkey:{version}" if flavour == "valkey" else f"redis:{version}"
    command = [f"{flavour}-server", "--save", "", "--appendonly", "no"]
    return RedisContainer(image).with_command(command)
