"""Servers for tests in containers, where Docker runs; needs the extra ``testcontainers``."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testcontainers.community.postgres import PostgresContainer

__all__ = ["postgres_container"]


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
