"""Schedules: checked rewrites of loop programs, one primitive a file."""

from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef, LoopRef

__all__ = ["BlockRef", "LoopRef", "Schedule"]
