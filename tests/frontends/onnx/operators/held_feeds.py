"""Sequences and optional values as the tensors that an imported graph has in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.driver.checking.reference import run_graph
from weft.graph import Graph
from weft.ir import Const
from weft.runtime.held_values import tensors_given, value_made
from weft.runtime.package import TensorSpec


def run_held(graph: Graph, feeds: Mapping[str, Any], outputs: Sequence[str]) -> list[Any]:
    """Returns the outputs of a graph, by the names that the model has for them, for inputs by the model's names."""
    specs = {
        v.name: TensorSpec(v.name, v.dtype, tuple([int(s.value) if isinstance(s, Const) else str(s) for s in v.shape]))
        for v in graph.inputs
    }
    given = {n: a for name, held in feeds.items() for n, a in tensors_given(name, held, specs)}
    found = dict(zip(graph.output_names, run_graph(graph, {v.name: given[v.name] for v in graph.inputs}), strict=True))
    return [value_made(name, found, is_sequence=True) for name in outputs]
