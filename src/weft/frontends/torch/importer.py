"""From an exported program of PyTorch to a graph: inputs, weights, and each node by its translation in the table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import ml_dtypes
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from weft.frontends.frontend import Shapes
from weft.frontends.input_shapes import InputShapes
from weft.frontends.torch import ops
from weft.frontends.torch.call import Call, element_type
from weft.frontends.torch.registry import TABLE
from weft.frontends.unsupported import unsupported_operators
from weft.graph import Array, Graph, Value
from weft.graph.builder import CompileTimeConstant, Inputs, Operand, PartialEvaluator, Results, round_once
from weft.runtime.metadata import ModelMetadata
from weft.support.dtypes import DType, f32
from weft.support.errors import ModelError, WeftError
from weft.support.lazy_import import import_all
from weft.te import is_narrow

import_all(ops.__path__, ops.__name__)
TABLE.seal()

Scope: TypeAlias = dict[Node, Any]
"""Operands by the nodes that stand for them; tuples of them for nodes of several outputs."""


def from_exported_program(program: ExportedProgram, shapes: Shapes | None = None) -> Graph:
    """Imports a program that `torch.export.export` made; its dynamic dimensions are symbolic sizes.

    *shapes* gives sizes to symbolic dimensions by PyTorch's names for them (`s77`, as the printed program shows them), or whole
    shapes to inputs. Programs that change tensors in place are made functional first.

    Raises `ModelError` for a program that uses an unsupported feature, naming the node, and `UnsupportedOperators` listing
    every operator that Weft does not have.
    """
    if any(_is_mutable(n.target) for n in program.graph.nodes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's own passes warn about one another
            program = program.run_decompositions({})
    _check_operators(program)
    return _Importer(program).run(shapes)


def _is_mutable(target: object) -> bool:
    return isinstance(target, torch._ops.OpOverload) and bool(target._schema.is_mutable)


def _name(target: Any) -> str:
    """Names an operator: `aten.relu.default`, `_operator.mul`."""
    return str(target) if isinstance(target, torch._ops.OpOverload) else f"{target.__module__}.{target.__name__}"


def _check_operators(program: ExportedProgram) -> None:
    missing: dict[str, list[str]] = {}
    for n in program.graph.nodes:
        if n.op == "call_function" and _name(n.target) not in TABLE:
            missing.setdefault(_name(n.target), []).append(n.name)
    if missing:
        hint = "export the module without these, or decomposed: program.run_decompositions()"
        raise unsupported_operators(dict(sorted(missing.items())), hint)


class _Importer:
    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        self.graph = Graph("main")
        self.graph.metadata = ModelMetadata(producer_name="pytorch", graph_name="main")
        self.evaluator = PartialEvaluator(self.graph)
        self.weights: dict[int, CompileTimeConstant] = {}

    def run(self, shapes: Shapes | None) -> Graph:
        """Imports the whole program."""
        scope = self._inputs(shapes)
        outputs: list[Any] = []
        for n in self.program.graph.nodes:
            if n.op == "call_function":
                scope[n] = self._node(n, scope)
            elif n.op == "output":
                outputs = [(v, scope.get(v)) for v in n.args[0]]
        for spec, (node, made) in zip(self.program.graph_signature.output_specs, outputs, strict=True):
            if spec.kind is not OutputKind.USER_OUTPUT:
                raise ModelError(
                    f"the program changes {spec.target!r}, which Weft keeps constant",
                    hint="export the module for inference: torch.export.export(module.eval(), ...)",
                )
            if made is None:
                raise ModelError(f"the output {node} is not a tensor", hint="return tensors only")
            self.graph.output(self.evaluator.value(made, f"output {node}"), str(node))
        return self.graph

    def _inputs(self, shapes: Shapes | None) -> Scope:
        """Declares the inputs that a user gives; parameters, buffers and constants are weights."""
        specs = {s.arg.name: s for s in self.program.graph_signature.input_specs}
        nodes = [n for n in self.program.graph.nodes if n.op == "placeholder"]
        given = [n for n in nodes if specs[n.name].kind is InputKind.USER_INPUT]
        for n in given:
            if not isinstance(n.meta.get("val"), torch.Tensor):
                raise ModelError(f"the input {n.name!r} is no tensor", hint="export the module with tensors for inputs")
        declared = {n.name: [_declared(s) for s in n.meta["val"].shape] for n in given}
        sizes = InputShapes(shapes or {}).resolve(declared, self.graph)
        return {
            n: self.graph.input(n.name, sizes[n.name], element_type(n.meta["val"].dtype, f"input {n.name}"))
            if n in given
            else self._weight(specs[n.name])
            for n in nodes
        }

    def _weight(self, spec: Any) -> CompileTimeConstant:
        """Returns a parameter, a buffer or a constant; tensors that modules share are one constant."""
        held = self.program.constants if spec.target in self.program.constants else self.program.state_dict
        tensor = held.get(spec.target)
        if not isinstance(tensor, torch.Tensor):
            raise ModelError(f"the program's {spec.target!r} is no tensor", hint="export the module without it")
        if id(tensor) not in self.weights:
            self.weights[id(tensor)] = CompileTimeConstant(_array(tensor, spec.target), spec.target)
        return self.weights[id(tensor)]

    def _node(self, node: Node, scope: Mapping[Node, Any]) -> Any:
        source = f"{_name(node.target)} {node.name}"
        arguments = _arguments(node, scope)
        operands = list(_operands(arguments))
        dtype, operand_dtype = _result_type(node, source), _operand_type(node, source)
        translate = TABLE[_name(node.target)]
        self.graph.is_extended |= TABLE.is_foreign(_name(node.target))

        def translated(evaluator: PartialEvaluator, given: Inputs) -> Results:
            same = all(a is b or (b is not None and a.dtype is b.dtype) for a, b in zip(operands, given, strict=True))
            types = [t if same or t is None or not is_narrow(t) else f32 for t in (dtype, operand_dtype)]
            return translate(Call(evaluator, source, _replaced(arguments, iter(given)), *types))

        before = len(self.graph.nodes)
        try:
            made = round_once(translated, self.evaluator, operands, source)
        except ModelError:
            raise
        except WeftError as error:
            raise ModelError(error.message, where=source, hint=error.hint) from error
        for v in {v for n in self.graph.nodes[before:] for v in n.outputs} & set(made):
            v.name = node.name
        return made if isinstance(node.meta.get("val"), tuple | list) or not made else made[0]


def _declared(size: Any) -> int | str:
    return size if isinstance(size, int) else str(size)


def _array(tensor: torch.Tensor, name: str) -> Array:
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
    elif isinstance(value, dict | list | tuple):
        for v in value.values() if isinstance(value, dict) else value:
            yield from _operands(v)


def _replaced(value: Any, operands: Iterator[Operand | None]) -> Any:
    """Returns arguments with their operands replaced by others, in the order of `_operands`."""
    if isinstance(value, Value | CompileTimeConstant):
        return next(operands)
    if isinstance(value, dict):
        return {k: _replaced(v, operands) for k, v in value.items()}
    return type(value)([_replaced(v, operands) for v in value]) if isinstance(value, list | tuple) else value


def _result_type(node: Node, where: str) -> DType | None:
    made = node.meta.get("val")
    first = made[0] if isinstance(made, tuple | list) and made else made
    return element_type(first.dtype, where) if isinstance(first, torch.Tensor) else None


def _operand_type(node: Node, where: str) -> DType | None:
    """Returns the type that PyTorch promotes the operands of an element-wise operator to."""
    metas = [a.meta.get("val") if isinstance(a, Node) else a for a in node.args[:2]]
    if len(metas) < 2 or not any(isinstance(m, torch.Tensor) for m in metas):
        return None
    if not all(isinstance(m, torch.Tensor | int | float | bool) for m in metas):
        return None
    return element_type(torch.result_type(*metas), where)
