"""From the nodes of a graph of PyTorch's to nodes of Weft's, each by its translation in the table."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np
import torch
from torch.fx import GraphModule, Node

from weft.frontends.random_seeds import RandomSeeds
from weft.frontends.torch import ops
from weft.frontends.torch.call import RANDOM_STREAM, Call, element_type
from weft.frontends.torch.complex_numbers import (
    COMPLEX,
    Complex,
    has_complex,
    joined,
    real_type,
    taken_apart,
)
from weft.frontends.torch.decompose import WRAPPERS, is_effect, live_nodes, name_of, unknown_operators
from weft.frontends.torch.ops.complex_numbers import complex_translation
from weft.frontends.torch.region_calls import CONTROL_FLOW
from weft.frontends.torch.region_calls import Graph as GraphOfCall
from weft.frontends.torch.registry import TABLE, Translation
from weft.frontends.torch.source_lines import with_line
from weft.frontends.torch.strides import in_memory_order
from weft.frontends.unsupported import unsupported_operators
from weft.graph import Array, Graph, Value
from weft.graph.builder import Builder, CompileTimeConstant, Inputs, Operand, PartialEvaluator, Results, round_once
from weft.runtime.metadata import ModelMetadata
from weft.support.dtypes import DType, f32, i64
from weft.support.errors import ModelError, WeftError
from weft.support.lazy_import import import_all
from weft.te import is_narrow

import_all(ops.__path__, ops.__name__)
TABLE.seal()
COMPLEX.seal()

Scope: TypeAlias = dict[Node, Any]
"""Operands by the nodes that stand for them; tuples of them for nodes of several outputs."""


SEED: Final = "seed"
"""The input that a model which draws random numbers has behind its own: an int64, for each value of which it draws others."""


class NodeImporter:
    """Imports the nodes of graphs of PyTorch's into `graph`; who makes it declares the inputs."""

    def __init__(self) -> None:
        self.graph = Graph("main")
        self.graph.metadata = ModelMetadata(producer_name="pytorch", graph_name="main")
        self.evaluator = PartialEvaluator(self.graph)
        self.weights: dict[int, tuple[torch.Tensor, CompileTimeConstant]] = {}
        self.seed: Value | None = None
        self.random = RandomSeeds(Builder(self.evaluator, "the seed of a call"), self._seed_input)

    def body(self, module: GraphModule, scope: Scope, unread: Collection[Node] = ()) -> list[tuple[Any, Any]]:
        """Imports the nodes of a graph, those that stay *unread* left out; returns its outputs, each with its value."""
        for n in live_nodes(module.graph):
            if n.op == "get_attr":
                scope[n] = self._attribute(module, n)
            elif n.op == "call_function" and is_effect(n):
                scope[n] = None
            elif n.op == "call_function" and n not in unread:
                scope[n] = self._node(n, scope)
            elif n.op == "output":
                made = n.args[0] if isinstance(n.args[0], list | tuple) else [n.args[0]]
                return [(v, _value_of(v, scope)) for v in made]
        return []

    def _attribute(self, module: GraphModule, node: Node) -> Any:
        """Returns a graph that an operator takes, or a constant."""
        found = operator.attrgetter(node.target)(module)
        return found if isinstance(found, GraphModule) else self.constant(found, str(node.target))

    def _inlined(self, node: Node, scope: Scope) -> tuple[Any, ...]:
        """Imports the graph that a node runs, it may be in another mode of PyTorch's, such as without gradients."""
        graph, first = WRAPPERS[name_of(node.target)]
        body = scope[node.args[graph]]
        given = [_value_of(v, scope) for v in node.args[first:]]
        places = [n for n in body.graph.nodes if n.op == "placeholder"]
        return tuple([made for _, made in self.body(body, Scope(zip(places, given, strict=True)))])

    def _controlled(self, node: Node, scope: Scope) -> tuple[Any, ...]:
        """Imports an operator that runs graphs, each as a region."""
        name = name_of(node.target)
        given = [self._with_graphs(_resolved(v, scope)) for v in node.args]
        source = f"{name} {node.name}"
        try:
            return tuple(CONTROL_FLOW[name](Builder(self.evaluator, source), *given))
        except ModelError as error:
            raise type(error)(error.message, where=with_line(error.where or source, node), hint=error.hint) from error

    def _with_graphs(self, value: Any) -> Any:
        """Returns an argument with the importer of a graph in the place of each."""
        if isinstance(value, list):
            return [self._with_graphs(v) for v in value]
        return GraphOfCall(value, partial(self._region, value)) if isinstance(value, GraphModule) else value

    def _region(
        self, module: GraphModule, region: Builder, given: Sequence[Any], step: Operand | None = None
    ) -> list[Any]:
        """Imports a graph, given its arguments, into *region*, of the iteration of a loop that has the number *step*."""
        around = self.graph, self.evaluator, self.random
        self.graph, self.evaluator = region.evaluator.graph, region.evaluator
        self.random = self.random.inside(region, step)
        try:
            places = [n for n in module.graph.nodes if n.op == "placeholder"]
            return [made for _, made in self.body(module, Scope(zip(places, given, strict=True)))]
        finally:
            self.graph, self.evaluator, self.random = around

    def output(self, made: Any, name: str, node: object) -> str:
        """Makes a tensor or a number an output called *name*, and returns that."""
        if isinstance(made, bool | int | float):
            made = CompileTimeConstant(np.asarray(made))
        if isinstance(made, Complex):
            made = joined(Builder(self.evaluator, f"output {node}"), made)
        if not isinstance(made, Value | CompileTimeConstant):
            raise ModelError(f"the output {node} is not a tensor", hint="return tensors only")
        while name in self.graph.output_names:
            name += "_"
        self.graph.output(self.evaluator.value(made, f"output {node}"), name)
        return name

    def input(self, name: str, meta: torch.Tensor, shape: Sequence[Any]) -> Operand | Complex:
        """Declares an input like the tensor *meta*, of a *shape* whose sizes have names; complex numbers are [..., 2]."""
        dtype = element_type(real_type(meta.dtype), f"input {name}")
        if not meta.is_complex():
            return self.graph.input(name, shape, dtype)
        return taken_apart(Builder(self.evaluator, f"input {name}"), self.graph.input(name, (*shape, 2), dtype))

    def constant(self, tensor: torch.Tensor, name: str) -> CompileTimeConstant | Complex:
        """Returns a constant of a tensor's elements, the same for the same tensor, which is kept as long."""
        if tensor.is_complex():
            held = tensor.detach().resolve_conj()
            return Complex(*[CompileTimeConstant(elements_of(part, name), name) for part in (held.real, held.imag)])
        if id(tensor) not in self.weights:
            self.weights[id(tensor)] = (tensor, CompileTimeConstant(elements_of(tensor, name), name))
        return self.weights[id(tensor)][1]

    def _seed_input(self, b: Builder) -> Value:
        """Returns the seed of random numbers, which is made an input."""
        graph = b.evaluator.graph
        taken = {v.name for v in graph.inputs}
        name = SEED if SEED not in taken else next(n for k in count(1) if (n := f"{SEED}_{k}") not in taken)
        self.seed = graph.input(name, (), i64)
        return self.seed

    def _node(self, node: Node, scope: Scope) -> Any:
        if name_of(node.target) in WRAPPERS:
            return self._inlined(node, scope)
        if name_of(node.target) in CONTROL_FLOW:
            return self._controlled(node, scope)
        source = f"{name_of(node.target)} {node.name}"
        arguments = _arguments(node, scope) | {RANDOM_STREAM: self.random.stream}
        if node.target is torch.ops.aten.as_strided.default:
            arguments |= in_memory_order(Builder(self.evaluator, source), node, arguments)
        operands = list(_operands(arguments))
        dtype, operand_dtype = _result_type(node, with_line(source, node)), _operand_type(node, with_line(source, node))
        translate = _translation(node, arguments)
        self.graph.is_extended |= TABLE.is_foreign(name_of(node.target))

        def translated(evaluator: PartialEvaluator, given: Inputs) -> Results:
            same = all(a is b or (b is not None and a.dtype is b.dtype) for a, b in zip(operands, given, strict=True))
            types = [t if same or t is None or not is_narrow(t) else f32 for t in (dtype, operand_dtype)]
            return translate(Call(evaluator, source, _replaced(arguments, iter(given)), *types))

        before = len(self.graph.nodes)
        try:
            if has_complex([list(arguments.values()), node.meta.get("val")]):
                found: Any = translated(self.evaluator, operands)
                made = found if isinstance(found, tuple) else (found,)
            else:
                made = round_once(translated, self.evaluator, operands, source)
        except ModelError as error:
            raise type(error)(error.message, where=with_line(error.where or source, node), hint=error.hint) from error
        except WeftError as error:
            raise ModelError(error.message, where=with_line(source, node), hint=error.hint) from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            message = f"these arguments are not supported: {type(error).__name__}: {error}"
            raise ModelError(message, where=with_line(source, node), hint="give others in the module") from error
        for v in {v for n in self.graph.nodes[before:] for v in n.outputs} & set(made):
            v.name = node.name
        return made if isinstance(node.meta.get("val"), tuple | list) or not made else made[0]


def _value_of(v: Any, scope: Scope) -> Any:
    """Returns the value of a node, None where it has none; a constant itself."""
    return scope.get(v) if isinstance(v, Node) else v


def _translation(node: Node, arguments: Mapping[str, Any]) -> Translation:
    """Returns the translation of a call, of complex numbers where there are any."""
    name = name_of(node.target)
    is_complex = has_complex([list(arguments.values()), node.meta.get("val")])
    if not is_complex and name in TABLE:
        return TABLE[name]
    found = complex_translation(name)
    if found is None:
        raise ModelError(
            f"{name} of complex numbers is not supported",
            where=with_line(f"{name} {node.name}", node),
            hint="compute with the real and the imaginary part in the module",
        )
    return found


def check_operators(module: GraphModule, unread: Collection[Node] = ()) -> None:
    """Raises `UnsupportedOperators`, which lists all operators without a translation, those of nodes that stay *unread* aside."""
    missing = {k: [with_line(n.name, n) for n in nodes] for k, nodes in unknown_operators(module, unread).items()}
    if missing:
        raise unsupported_operators(missing, "compute what they compute by others in the module")


def elements_of(tensor: torch.Tensor, name: str) -> Array:
    """Returns a tensor's elements, in the same memory where it is on this processor and in order."""
    element_type(tensor.dtype, f"tensor {name}")
    held = tensor.detach().cpu().contiguous()
    if held.dtype is torch.bfloat16:
        return held.view(torch.int16).numpy().view(ml_dtypes.bfloat16)  # type: ignore[no-any-return]
    return held.numpy()  # type: ignore[no-any-return]


def _arguments(node: Node, scope: Mapping[Node, Any]) -> dict[str, Any]:
    """Returns a call's arguments by the names of its schema, defaults among them; operands stand for nodes."""
    if not isinstance(node.target, torch._ops.OpOverload):  # arithmetic on sizes, and one output of several
        return {name: _resolved(v, scope) for name, v in zip(("self", "other"), node.args, strict=False)}
    declared = node.target._schema.arguments
    given = dict(zip([a.name for a in declared], node.args, strict=False)) | node.kwargs
    return {a.name: _resolved(given.get(a.name, a.default_value), scope) for a in declared}


def _resolved(value: Any, scope: Mapping[Node, Any]) -> Any:
    if isinstance(value, Node):
        return scope[value]
    return [_resolved(v, scope) for v in value] if isinstance(value, list | tuple) else value


def _operands(value: Any) -> Iterator[Operand]:
    """Yields the operands in arguments, in order."""
    if isinstance(value, Value | CompileTimeConstant):
        yield value
    elif isinstance(value, Complex):
        yield from (value.real, value.imaginary)
    elif isinstance(value, dict | list | tuple):
        for v in value.values() if isinstance(value, dict) else value:
            yield from _operands(v)


def _replaced(value: Any, operands: Iterator[Operand | None]) -> Any:
    """Returns arguments with their operands replaced by others, in the order of `_operands`."""
    if isinstance(value, Value | CompileTimeConstant):
        return next(operands)
    if isinstance(value, Complex):
        return Complex(next(operands), next(operands))  # type: ignore[arg-type] # as they were: none is absent
    if isinstance(value, dict):
        return {k: _replaced(v, operands) for k, v in value.items()}
    return type(value)([_replaced(v, operands) for v in value]) if isinstance(value, list | tuple) else value


def _result_type(node: Node, where: str) -> DType | None:
    made = node.meta.get("val")
    first = made[0] if isinstance(made, tuple | list) and made else made
    return element_type(real_type(first.dtype), where) if isinstance(first, torch.Tensor) else None


def _of_size(meta: Any) -> Any:
    """Returns a number of the kind of a symbolic one; all others as they are."""
    return 1 if isinstance(meta, torch.SymInt) else 1.0 if isinstance(meta, torch.SymFloat) else meta


def _operand_type(node: Node, where: str) -> DType | None:
    """Returns the type that PyTorch promotes the operands of an element-wise operator to."""
    metas = [_of_size(a.meta.get("val")) if isinstance(a, Node) else a for a in node.args[:2]]
    if len(metas) < 2 or not any(isinstance(m, torch.Tensor) for m in metas):
        return None
    if not all(isinstance(m, torch.Tensor | int | float | bool) for m in metas):
        return None
    return element_type(real_type(torch.result_type(*metas)), where)
