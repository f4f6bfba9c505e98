"""Schedules made without search: a rule for each class of block, whose choices are decisions of a plan."""

from weft.schedule.rules.choose import apply_plan, carry_out, schedule_program

__all__ = ["apply_plan", "carry_out", "schedule_program"]
