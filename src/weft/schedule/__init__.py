"""Schedules: checked rewrites of loop programs, one primitive a file."""

from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef, LoopRef
from weft.schedule.trace import Trace, replay

__all__ = ["BlockRef", "LoopRef", "Schedule", "Trace", "replay"]
