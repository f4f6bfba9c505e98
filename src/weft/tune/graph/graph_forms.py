"""The forms that plans give the graph of a model, and the kernels that these need, without building them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from weft.cost import Plan, Planner
from weft.driver.build import Compilation, build, fuse_graph, kernel_requests, optimize_graph, values_in_place
from weft.driver.cache.code_cache import Cache
from weft.driver.kernel_request import KernelRequest
from weft.driver.options import CompileOptions
from weft.driver.recorded.best_records import BestRecords
from weft.driver.recorded.recorded_plans import with_recorded_plan
from weft.graph import FusedGraph, Graph
from weft.targets import Target


@dataclass(frozen=True, eq=False)
class GraphForms:
    """A model's imported graph, with the compiler's settings; kernels follow the records in *options*."""

    source: Graph
    target: Target
    options: CompileOptions
    cache: Cache | None = None

    def decided(self, planner: Planner) -> FusedGraph:
        """Returns the kernels that the decisions of *planner* give; raises `ScheduleError` where they are of another graph."""
        with ThreadPoolExecutor(max_workers=max(1, self.target.cores)) as pool:
            graph = optimize_graph(self.source, self.target, self.options, self.cache, pool, planner)
        fused = fuse_graph(graph, self.target, self.options, planner)
        planner.finish()
        return fused

    def requests_of(self, fused: FusedGraph) -> list[KernelRequest]:
        """Returns the request for the kernel of each call, with the plan of its record where there is one."""
        requests = kernel_requests(fused, self.options, values_in_place(fused, self.options, self.target))
        with BestRecords(self.options, self.target) as records:
            found = {key: with_recorded_plan(r, records) for key, r in requests.items()}
        return [found[g.key] for g in fused.calls]

    def build(self, plan: Plan) -> Compilation:
        """Returns the compiled model whose graph is made by *plan*."""
        return build(self.source, self.target, self.options, cache=self.cache, graph_plan=plan)
