"""Measurement of candidates: jobs as values, processes that carry them out, and results that can be trusted."""

from weft.tune.measure.build_candidate import build
from weft.tune.measure.cluster import check_cluster, cluster_executor
from weft.tune.measure.jobs import BuildJob, Built, Failed, Limits, Measured, RunJob
from weft.tune.measure.local_executor import LocalExecutor, local_executors
from weft.tune.measure.measurer import IN_FLIGHT, PLACES, Measurer, Outcome, shares_text, stage_seconds
from weft.tune.measure.ratio_interval import Interval, enclosing, median_interval
from weft.tune.measure.run_candidate import run

__all__ = [
    "IN_FLIGHT",
    "BuildJob", "Built", "Failed", "Interval", "Limits", "LocalExecutor", "Measured", "Measurer", "Outcome", "PLACES", "RunJob",
    "build", "check_cluster", "cluster_executor", "enclosing", "local_executors", "median_interval", "run", "shares_text",
    "stage_seconds",
]
