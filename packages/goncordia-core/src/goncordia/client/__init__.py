"""The client: what enqueues jobs, looks at them, changes them and waits for them."""

from goncordia.client.client import Client
from goncordia.client.handles import EnqueuedMany, JobHandle, JobRef
from goncordia.client.info import JobInfo, JobPage, QueueInfo
from goncordia.client.operations.changes import ChangeResult, ChangeSummary
from goncordia.client.operations.filters import JobFilter, StateName
from goncordia.client.sync import SyncClient

__all__ = [
    "ChangeResult",
    "ChangeSummary",
    "Client",
    "EnqueuedMany",
    "JobFilter",
    "JobHandle",
    "JobInfo",
    "JobPage",
    "JobRef",
    "QueueInfo",
    "StateName",
    "SyncClient",
]
