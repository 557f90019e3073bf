"""From a URL to a driver, by entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from goncordia.driver import ENTRY_POINT_GROUP, connect, urls
from goncordia.errors import ConfigurationError
from goncordia.memory import MemoryDriver


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only these drivers are installed."""
    points = {
        "memory": "goncordia.memory:MemoryDriver",
        "broken": "goncordia.no_such_module:Driver",
        "lacking": "goncordia.memory:NoSuchDriver",
        "function": "goncordia.driver.urls:connect",
        "object": "goncordia.memory.driver:_CAPABILITIES",
    }

    def entry_points(group: str) -> EntryPoints:
        assert group == ENTRY_POINT_GROUP
        return EntryPoints(EntryPoint(name, value, group) for name, value in points.items())

    monkeypatch.setattr(urls, "entry_points", entry_points)


def test_the_installed_package_provides_memory() -> None:
    assert isinstance(connect("memory://"), MemoryDriver)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("url", ["memory://", "MEMORY://", "Memory://"])
def test_the_scheme_picks_the_driver(url: str) -> None:
    assert isinstance(connect(url), MemoryDriver)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("url", ["", "memory", "://x", "jobs.db", "sqlite:jobs.db"])
def test_a_url_without_a_scheme(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        connect(url)
    assert str(caught.value) == (
        f"url: {url!r} does not begin with a scheme and '://'; a URL looks like 'sqlite:///jobs.db'"
    )


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("url", "package"),
    [
        ("sqlite:///jobs.db", "goncordia-driver-sqlite"),
        ("PostgreSQL://db/x", "goncordia-driver-pg"),
        ("postgresql+psycopg://db/x", "goncordia-driver-pg[psycopg]"),
        ("mongodb+srv://db", "goncordia-driver-mongodb"),
        ("rediss://db", "goncordia-driver-redis"),
    ],
)
def test_a_missing_package_is_named(url: str, package: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        connect(url)
    scheme = url.partition("://")[0].lower()
    assert str(caught.value) == (
        f"url: no installed driver claims the scheme {scheme!r}; install {package} "
        "(installed: broken, function, lacking, memory, object)"
    )


@pytest.mark.usefixtures("installed")
def test_an_unknown_scheme_names_what_is_installed() -> None:
    with pytest.raises(
        ConfigurationError, match=r"scheme 'foo' \(installed: broken, .*, object\)$"
    ):
        connect("foo://bar")


def test_without_any_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urls, "entry_points", lambda group: EntryPoints())
    with pytest.raises(ConfigurationError, match=r"\(installed: none\)$"):
        connect("memory://")


@pytest.mark.usefixtures("installed")
def test_a_driver_that_cannot_be_imported_says_why() -> None:
    with pytest.raises(
        ConfigurationError, match=r"^url: .*'broken'.*cannot be imported: "
    ) as caught:
        connect("broken://x")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("scheme", ["function", "object"])
def test_what_is_no_driver_is_refused(scheme: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^url: .* is not a subclass of BaseDriver$"):
        connect(f"{scheme}://x")


@pytest.mark.usefixtures("installed")
def test_an_entry_point_to_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^url: .*'lacking'.*cannot be imported"):
        connect("lacking://x")


def test_a_password_is_not_shown() -> None:
    with pytest.raises(ConfigurationError) as caught:
        connect("host=127.0.0.1 password=hunter2")
    assert (
        str(caught.value)
        == "url: it does not begin with a scheme and '://'; a URL looks like 'sqlite:///jobs.db'"
    )
