"""Running what a composite builds: constants and inputs in, arrays out, by the reference interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.driver.checking.reference import run_graph
from weft.graph import Array, Graph
from weft.graph.builder import Builder, Operand, PartialEvaluator
from weft.support.dtypes import from_numpy

Build = Callable[..., Operand | Sequence[Operand]]


def run_composite(build: Build, *arrays: Array) -> list[Array]:
    """Returns the outputs of *build*, a function of a builder and of one operand for each of *arrays*, which are inputs."""
    graph = Graph()
    b = Builder(PartialEvaluator(graph), "Node /n")
    given = [graph.input(f"x{k}", a.shape, from_numpy(a.dtype)) for k, a in enumerate(arrays)]
    made = build(b, *given)
    for v in made if isinstance(made, Sequence) else [made]:
        graph.output(b.evaluator.value(v))
    return run_graph(graph, {v.name: a for v, a in zip(given, arrays, strict=True)})
