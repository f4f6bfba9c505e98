"""Tuning the choices across a graph, by the times of kernels in a run of the model."""

from weft.tune.graph.graph_session import SHARE, Answer, Budget, GraphReport, tune_graph
from weft.tune.graph.graph_tuner import GraphTrial, GraphTuner
from weft.tune.graph.kernel_times import Attributed, attribute
from weft.tune.graph.measured_costs import NEVER, MeasuredCosts

__all__ = [
    "NEVER", "SHARE", "Answer", "Attributed", "Budget", "GraphReport", "GraphTrial", "GraphTuner", "MeasuredCosts",
    "attribute", "tune_graph",
]
