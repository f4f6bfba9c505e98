"""From a graph that PyTorch's compiler captured to a graph of Weft's: its inputs are tensors and sizes, weights among them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule, Node

from weft.frontends.input_shapes import InputShapes
from weft.frontends.torch.nodes import NodeImporter, Scope, check_operators, elements_of
from weft.frontends.torch.shared_results import SharedResults, shared_results
from weft.graph import Graph, Parameter
from weft.graph.builder import Builder
from weft.support.dtypes import i64
from weft.support.errors import ModelError


class Captured(NamedTuple):
    """A graph, the numbers of the arguments that its inputs are, and the numbers of the results that its outputs are.

    Other arguments are weights, or sizes that the shapes of tensors tell. *passed* are the results that are arguments as they
    are given, with the arguments' numbers, and *shared* those that are views; results that are none of these are None. A graph
    that *draws* random numbers has a seed for its last input, which is no argument. *parameters* are arguments too, by number.
    """

    graph: Graph
    arguments: list[int]
    results: list[int]
    passed: dict[int, int]
    shared: SharedResults
    draws: bool
    parameters: dict[int, Parameter]


def from_graph_module(
    module: GraphModule,
    weights: Mapping[int, torch.Tensor] | None = None,
    parameters: Mapping[int, torch.Tensor] | None = None,
) -> Captured:
    """Imports a functional graph of operators of `aten`; *weights* are the values of arguments that do not change, by number.

    Those of *parameters*, of floats, may change between calls.

    Raises `ModelError` and `UnsupportedOperators` as `from_exported_program` does.
    """
    return _Importer().run(module, weights or {}, parameters or {})


class _Importer(NodeImporter):
    def run(
        self, module: GraphModule, weights: Mapping[int, torch.Tensor], parameters: Mapping[int, torch.Tensor]
    ) -> Captured:
        """Imports a whole graph."""
        places = [n for n in module.graph.nodes if n.op == "placeholder"]
        held = {*weights, *parameters}
        tensors = {k: n for k, n in enumerate(places) if isinstance(n.meta.get("val"), torch.Tensor) and k not in held}
        declared = {n.name: [_declared(s) for s in n.meta["val"].shape] for n in tensors.values()}
        shapes = InputShapes({}).resolve(declared, self.graph)
        scope = Scope({places[k]: self.constant(t, places[k].name) for k, t in weights.items()})
        changing = {k: self._parameter(t, places[k].name) for k, t in parameters.items()}
        scope.update((places[k], p) for k, p in changing.items())
        for n in tensors.values():
            scope[n] = self.input(n.name, n.meta["val"], shapes[n.name])
        numbers = [k for k, n in enumerate(places) if n not in scope and self._number(n, scope)]
        order = {v.name: k for k, v in enumerate(self.graph.inputs)}
        arguments = sorted([*tensors, *numbers], key=lambda k: order[places[k].name])
        returned = next(n for n in reversed(module.graph.nodes) if n.op == "output").args[0]
        shared = shared_results(module.graph, places, returned)
        check_operators(module, shared.own)
        made = self.body(module, scope, shared.own)
        results, passed = self._results(made, places, shared.numbers)
        return Captured(self.graph, arguments, results, passed, shared, self.seed is not None, changing)

    def _results(
        self, made: Sequence[tuple[Any, Any]], places: Sequence[Node], shared: Collection[int]
    ) -> tuple[list[int], dict[int, int]]:
        """Makes outputs of results that are not *shared*; returns their numbers, and those of arguments that are returned."""
        results, passed = list[int](), dict[int, int]()
        for k, (node, value) in enumerate(made):
            if node in places:
                passed[k] = places.index(node)
            elif value is not None and k not in shared:
                self.output(value, str(node), node)
                results.append(k)
        return results, passed

    def _parameter(self, tensor: torch.Tensor, name: str) -> Parameter:
        return self.graph.parameter(elements_of(tensor, name), name)

    def _number(self, node: Node, scope: Scope) -> bool:
        """Gives a size its value, which the shape of a tensor tells; returns true if it had to become an input."""
        found = node.meta.get("val")
        b = Builder(self.evaluator, f"input {node.name}")
        if isinstance(found, int) and not isinstance(found, bool):
            scope[node] = found
        elif isinstance(found, torch.SymInt):
            if str(found) in self.graph.dims:
                scope[node] = b.size(self.graph.dims[str(found)])
                return False
            given = self.graph.input(node.name, (), i64)
            scope[node] = b.size(b.late_number(given, node.name, f"the size {node.name}"))
            return True
        else:
            raise ModelError(
                f"the input {node.name!r} is a {type(found).__name__}, no tensor and no whole number",
                hint="give tensors to what is compiled",
            )
        return False


def _declared(size: Any) -> int | str:
    return size if isinstance(size, int) else str(size)
