"""What a job's arguments are, to a type checker.

Any dataclass, ``msgspec.Struct``, attrs class or pydantic model is an args class when it says its
``kind`` in its own body::

    @dataclass
    class SendEmail:
        kind: ClassVar[str] = "send_email"
        to: str
        subject: str
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Protocol

from goncordia._typing import TypeVar

__all__ = ["JobArgs", "Returns", "TaskArgs"]

R_co = TypeVar("R_co", covariant=True, default=Any)


class JobArgs(Protocol):
    """Anything with a class-level ``kind``.

    Other class-level names that mean something: ``queue``, ``priority``, ``tags``, ``unique``,
    ``max_attempts``, ``timeout`` and ``payload_version`` are the options of its jobs, unless the
    client or the call says otherwise.
    """

    kind: ClassVar[str]


class Returns(Protocol[R_co]):
    """Args that also say what their worker returns, so that ``wait`` is typed by it.

    The method is never called::

        def __returns__(self) -> int:
            raise NotImplementedError
    """

    kind: ClassVar[str]

    def __returns__(self) -> R_co:
        """Only its return type counts."""
        ...


class TaskArgs(Generic[R_co]):
    """The arguments of one call of a function task, as ``task.args(...)`` gives them.

    Each task has a subclass of its own, a ``msgspec.Struct`` with a field for each parameter.
    """

    __slots__ = ()

    kind: ClassVar[str]

    def __returns__(self) -> R_co:
        """Only its return type counts; see :class:`Returns`."""
        raise NotImplementedError
