"""What is said by NOTIFY, and what is understood of it."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from goncordia.driver import After, At, NewJob, Wake
from goncordia_sql.postgres.notify import News, channel_of, heard

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def job(queue: str, run_at: After | At | None = None) -> NewJob:
    return NewJob(id=uuid4(), kind="k", args=b"{}", queue=queue, run_at=run_at)


def test_the_soonest_of_each_queue_is_said() -> None:
    news = News()
    later = At(datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
    past = At(datetime(2025, 1, 1, tzinfo=UTC))
    jobs = [job("a", After(5)), job("a", After(3)), job("b", later), job("c", past), job("d")]
    news.inserted(jobs, NOW.timestamp())
    assert set(heard(news.message())) == {
        Wake("jobs", "a", 3.0),
        Wake("jobs", "b", 60.0),
        Wake("jobs", "c", 0.0),
        Wake("jobs", "d", 0.0),
    }


def test_all_sorts_go_together_and_merge() -> None:
    one, other = News(), News()
    assert not one
    ids = [uuid4(), uuid4()]
    one.due(None, 4.0)
    one.cancels(ids[:1])
    other.due(None, 2.0)
    other.cancels(ids)
    other.queue("q")
    one.merge(other)
    assert one
    assert heard(one.message()) == [
        Wake("jobs", None, 2.0),
        Wake("cancel", job_ids=tuple(sorted(ids))),
        Wake("queue", "q"),
    ]


def test_what_is_too_much_is_said_shorter() -> None:
    news = News()
    for number in range(200):
        news.due("ä" * 60 + str(number), 100.0 + number)
        news.queue("ö" * 60 + str(number))
        news.cancels([UUID(int=number)])
    message = news.message()
    assert len(message.encode()) < 8000
    assert heard(message) == [
        Wake("jobs", None, 100.0),
        Wake("cancel", job_ids=()),
        Wake("queue", None),
    ]


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"jobs":5}', '{"jobs":{"a":"soon"}}'])
def test_what_is_not_understood_is_a_gap(text: str) -> None:
    assert heard(text) == [Wake("gap")]


def test_what_is_new_in_a_message_is_passed_over() -> None:
    assert heard('{"jobs":{"a":1},"more":1}') == [Wake("jobs", "a", 1.0)]


def test_the_channel_of_a_schema() -> None:
    assert channel_of("jobs") == "goncordia_jobs"
    assert len(channel_of("ä" * 31).encode()) <= 63
    assert channel_of("ä" * 31) != channel_of("ä" * 30 + "b")
