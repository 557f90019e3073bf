"""The worker of docker/compose.yaml: put your own in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from goncordia import Job, Registry


@dataclass
class SendEmail:
    """One e-mail."""

    kind: ClassVar[str] = "send_email"
    to: str
    subject: str


registry = Registry()


@registry.worker(SendEmail, max_attempts=5, timeout=30)
async def send_email(job: Job[SendEmail]) -> None:
    """Pretend to send it."""
    print(f"to {job.args.to}: {job.args.subject}")
