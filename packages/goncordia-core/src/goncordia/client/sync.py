"""The client for synchronous code."""

from __future__ import annotations

import random
from typing import Any, TypeVar, overload

from goncordia import _check
from goncordia._check import Duration
from goncordia.admission import Admission
from goncordia.args import Returns
from goncordia.client.handles import JobHandle, JobRef
from goncordia.client.operations.core import DEFAULT_REPLAYS, output_of, waits_for
from goncordia.client.sync_administration import SyncAdministration
from goncordia.client.sync_enqueueing import SyncEnqueueing
from goncordia.driver import SyncTxDriver
from goncordia.job import SyncJob
from goncordia.options import InsertOpts
from goncordia.payload.codecs import Codec

__all__ = ["SyncClient"]

Tx_contra = TypeVar("Tx_contra", contravariant=True)
R = TypeVar("R")
T = TypeVar("T")


class SyncClient(SyncEnqueueing[Tx_contra], SyncAdministration[Tx_contra]):
    """Enqueues jobs, looks at them, changes them and waits for them.

    The same as :class:`Client` for code without an event loop; several threads may share one. It
    holds no connection of its own and needs no closing; the driver is opened at the first use.

    Outside a transaction a request whose outcome is unknown, because the connection broke, is
    repeated as it was, with the same job ids, so that no job is enqueued twice.

    Args:
        driver: the backend.
        defaults: options of every enqueue; they win over those of the args class, and the call's
            win over them.
        replays: how often a request is repeated at most, after an unknown outcome or where the
            backend is away, before its error is raised, with growing, jittered pauses of at most
            two seconds; 0: never.
        codec: what args become before they are stored, such as encrypted; None: readable JSON.
        admission: bounds on how many jobs wait in a queue; None: there are none.
        rng: source of jitter and of the random part of job ids; only for runs that must be
            repeatable. Two clients with the same seed make the same ids at the same time: the
            job of the second is then taken for that of the first.

    Raises:
        ConfigurationError: a value is wrong.
    """

    def __init__(
        self,
        driver: SyncTxDriver[Tx_contra],
        *,
        defaults: InsertOpts | None = None,
        replays: int = DEFAULT_REPLAYS,
        codec: Codec | None = None,
        admission: Admission | None = None,
        rng: random.Random | None = None,
    ) -> None:
        super().__init__(driver, defaults, replays, rng, codec, admission)

    def complete_tx(self, tx: Tx_contra, job: SyncJob[Any, Any], /, output: object = None) -> None:
        """Complete the running job inside your own transaction: both happen, or neither does.

        The same as ``job.complete_tx(tx)``, with the transaction's type checked.

        Args:
            tx: see :meth:`enqueue_tx`.
            job: what the worker was called with.
            output: what ``wait`` shall give; what the worker returns afterwards is ignored.

        Raises:
            StaleClaimError: this run does not hold the job any more; let the transaction roll back.
            PayloadError: the output has no JSON form, or more than 64 KiB of it.
            UnsupportedError: the driver cannot.
            ConfigurationError: ``tx`` is in no transaction, or ``job`` is no running job.
        """
        _check.instance("job", job, SyncJob, "the SyncJob that the worker was called with")
        job.complete_tx(tx, output)

    @overload
    def wait(self, job: JobHandle[Returns[R]], /, *, timeout: Duration | None = None) -> R: ...

    @overload
    def wait(self, job: JobRef, /, *, output: type[T], timeout: Duration | None = None) -> T: ...

    @overload
    def wait(self, job: JobRef, /, *, timeout: Duration | None = None) -> object: ...

    def wait(self, job: JobRef, /, *, output: Any = None, timeout: Duration | None = None) -> Any:
        """Wait until a job has ended, and give what its worker returned.

        It blocks, and looks less and less often, at last once a second.

        Args:
            job: its handle, its id, or anything else with its ``id``. A job that was enqueued in
                a transaction can be waited for after the commit.
            output: the type of what the worker returns. Default: what the args of the handle
                declare, else plain JSON data.
            timeout: seconds after which to give up; None: never; 0: look once.

        Raises:
            JobFailedError: the job was discarded or cancelled; it is in ``.job``.
            TimeoutError: it did not end in time; it goes on.
            NotFoundError: there is no such job, or it was deleted meanwhile.
            PayloadError: the output does not fit the type.
        """
        job_id, seconds = waits_for(job, timeout)
        row = self._run(self._core.reading.finished(job_id, seconds))
        return output_of(job, row, output)
