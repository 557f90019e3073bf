"""Periodic jobs: schedules, and the scheduler that enqueues what is due.

The package is not called ``cron`` since that is the name of the function.
"""

from goncordia.periodic.cursors import ScheduleInfo, delete_schedule, list_schedules
from goncordia.periodic.job import CatchUp, PeriodicJob
from goncordia.periodic.scheduler import CronScheduler
from goncordia.periodic.schedules import Schedule, ScheduleFunction, cron, every

__all__ = [
    "CatchUp",
    "CronScheduler",
    "PeriodicJob",
    "Schedule",
    "ScheduleFunction",
    "ScheduleInfo",
    "cron",
    "delete_schedule",
    "every",
    "list_schedules",
]
