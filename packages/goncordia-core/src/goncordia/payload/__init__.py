"""Args as JSON text that is proved to come back equal; outputs and checkpoints; function tasks."""

from __future__ import annotations

from goncordia.payload.codec import (
    CONTENT_JSON,
    MAX_ARGS,
    MAX_OUTPUT,
    args_decoder,
    decode_args,
    decode_value,
    encode_args,
    encode_value,
)
from goncordia.payload.plans import plan_of
from goncordia.payload.tasks import Task, TaskDecorator

__all__ = [
    "CONTENT_JSON",
    "MAX_ARGS",
    "MAX_OUTPUT",
    "Task",
    "TaskDecorator",
    "args_decoder",
    "decode_args",
    "decode_value",
    "encode_args",
    "encode_value",
    "plan_of",
]
