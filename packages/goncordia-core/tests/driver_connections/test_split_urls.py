"""Splitting URLs in which there may be several hosts."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from goncordia.driver.connections.urls import split_url


@pytest.mark.parametrize(
    "url",
    [
        "a://h",
        "A://h/p",
        "a://u:p@h:1/p/q?x=1&y=a%20b#f",
        "a://u:p@[::1]:1/p",
        "a://[fe80::1]",
        "a:///p?x",
        "a://h?x=/y",
        "a://h#?",
        "a://u:[p]@h,i:2/p",
    ],
)
def test_as_the_standard_library_does(url: str) -> None:
    if "[p]" in url:  # which some versions of it refuse
        assert split_url(url).netloc == "u:[p]@h,i:2"
    else:
        assert split_url(url) == urlsplit(url)


@pytest.mark.parametrize(
    ("url", "netloc"),
    [
        ("a://x:1,[::2]:3,y/p", "x:1,[::2]:3,y"),
        ("a://u@[::1],[::2]:3", "u@[::1],[::2]:3"),
    ],
)
def test_addresses_in_brackets_anywhere(url: str, netloc: str) -> None:
    assert split_url(url).netloc == netloc


@pytest.mark.parametrize(
    "url",
    [
        "h",
        "://h",
        "a:h",
        "a://[::1",
        "a://::1]",
        "a://x,[::1",
        "a://[x]",
        "a://y[::1]",
        "a://[::1]z",
    ],
)
def test_no_url(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        split_url(url)
