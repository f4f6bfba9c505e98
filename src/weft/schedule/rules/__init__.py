"""Schedules made without search: a rule for each class of block, with sizes from facts of the target."""

from weft.schedule.rules.choose import schedule_program

__all__ = ["schedule_program"]
