"""The errors of the tree, on their way through pickle."""

from __future__ import annotations

import inspect
import pickle
from uuid import UUID

import pytest

from goncordia import errors
from goncordia.errors import (
    AdmissionRejectedError,
    ConflictError,
    DriverBusyError,
    GoncordiaError,
    JobFailedError,
    PayloadError,
    UnsupportedError,
)

SAMPLES: list[GoncordiaError] = [
    PayloadError("args.n: no", kind="work", job_id=UUID(int=1)),
    UnsupportedError("dict", "marks", "do without checkpoints"),
    UnsupportedError(None, "groups"),
    ConflictError("it is held", holder=UUID(int=2)),
    JobFailedError("it was discarded", {"a": "job"}),
    AdmissionRejectedError("full", queue="mail", depth=11, max_depth=10),
    DriverBusyError("locked", outcome="not_applied", retry_after=0.5),
]
SIMPLE = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, GoncordiaError) and "__init__" not in vars(cls)
]


class OwnError(UnsupportedError):
    """One that a driver's author derives."""

    def __init__(self, number: int) -> None:
        super().__init__("own", "marks")
        self.number = number


@pytest.mark.parametrize(
    "error", [*SAMPLES, OwnError(3), *(cls("it says") for cls in SIMPLE)], ids=repr
)
def test_an_error_comes_back_from_another_process(error: GoncordiaError) -> None:
    error.add_note("seen")
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert (str(back), back.args, vars(back)) == (str(error), error.args, vars(error))
    assert vars(back)["__notes__"] == ["seen"]
