"""Schedule primitives, their legality checks, and schedules made without search."""
