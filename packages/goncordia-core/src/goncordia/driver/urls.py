"""From a URL to a driver, by the entry points of the installed packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Final, TypeGuard

from goncordia._check import instance
from goncordia.driver.base import AnyDriver, BaseDriver
from goncordia.errors import ConfigurationError

__all__ = ["ENTRY_POINT_GROUP", "connect"]

ENTRY_POINT_GROUP: Final = "goncordia.drivers"

# Where none of the installed packages claims a scheme, these are named.
_PACKAGES: Final = {
    "postgresql": "goncordia-driver-pg",
    "postgresql+psycopg": "goncordia-driver-pg[psycopg]",
    "mysql": "goncordia-driver-mysql",
    "sqlite": "goncordia-driver-sqlite",
    "mongodb": "goncordia-driver-mongodb",
    "mongodb+srv": "goncordia-driver-mongodb",
    "redis": "goncordia-driver-redis",
    "rediss": "goncordia-driver-redis",
    "cassandra": "goncordia-driver-cassandra",
    "clickhouse": "goncordia-driver-clickhouse",
    "dynamodb": "goncordia-driver-dynamodb",
    "firestore": "goncordia-driver-firestore",
}


def connect(url: str) -> AnyDriver:
    """The driver for this URL; it connects at its first use.

    Args:
        url: such as ``"sqlite:///jobs.db"``. The scheme picks the driver.

    Raises:
        ConfigurationError: the URL has no scheme, no installed package claims it, or the package
            that does cannot be imported.
    """
    scheme, separator, _ = instance("url", url, str, "a str like 'sqlite:///jobs.db'").partition(
        "://"
    )
    if not separator or not scheme:
        shown = "it" if "=" in url or "@" in url else repr(url)  # there may be a password in it
        raise ConfigurationError(
            f"url: {shown} does not begin with a scheme and '://'; a URL looks like 'sqlite:///jobs.db'"
        )
    found = entry_points(group=ENTRY_POINT_GROUP)
    matching = [point for point in found if point.name == scheme.lower()]
    if not matching:
        raise ConfigurationError(_unclaimed(scheme.lower(), sorted(found.names)))
    return _load(matching[0]).from_url(url)


def _unclaimed(scheme: str, installed: list[str]) -> str:
    package = _PACKAGES.get(scheme)
    advice = f"; install {package}" if package else ""
    return (
        f"url: no installed driver claims the scheme {scheme!r}{advice} "
        f"(installed: {', '.join(installed) or 'none'})"
    )


def _load(point: EntryPoint) -> type[AnyDriver]:
    try:
        loaded: object = point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"url: the driver for {point.name!r}, {point.value!r}, cannot be imported: {error}"
        ) from error
    if not _is_driver(loaded):
        raise ConfigurationError(f"url: {point.value!r} is not a subclass of BaseDriver")
    return loaded


def _is_driver(found: object) -> TypeGuard[type[AnyDriver]]:
    return isinstance(found, type) and issubclass(found, BaseDriver)
