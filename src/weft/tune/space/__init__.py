"""Spaces of plans: the questions of the rules as knobs."""

from weft.tune.space.find_knobs import CarryOut, find_knobs
from weft.tune.space.knob import Knob
from weft.tune.space.plan_space import PlanSpace

__all__ = ["CarryOut", "Knob", "PlanSpace", "find_knobs"]
