"""From an exported program of PyTorch to a graph: its inputs, weights, outputs and states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.fx import GraphModule, Node

from weft.frontends.frontend import Shapes
from weft.frontends.input_shapes import InputShapes
from weft.frontends.torch.complex_numbers import Complex
from weft.frontends.torch.decompose import decomposed, needs_decomposition
from weft.frontends.torch.functionalization import without_changes
from weft.frontends.torch.nodes import NodeImporter, Scope, check_operators
from weft.frontends.torch.source_lines import with_line
from weft.graph import Constant, Graph, declare_states
from weft.graph.builder import CompileTimeConstant
from weft.ir import ExprLike
from weft.support.dim import Dim
from weft.support.errors import ModelError

_STATES: Final = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)
"""Outputs that are the values of buffers and parameters in the next call."""


def from_exported_program(program: ExportedProgram, shapes: Shapes | None = None) -> Graph:
    """Imports a program that `torch.export.export` made; its dynamic dimensions are symbolic sizes.

    *shapes* gives sizes to symbolic dimensions by PyTorch's names for them (`s77`, as the printed program shows them), or whole
    shapes to inputs. Programs that change tensors in place are made functional first, and operators that have no translation are
    decomposed into others; buffers that the program changes become states, which begin with the program's values.

    Raises `ModelError` for a program that uses an unsupported feature, naming the node, and `UnsupportedOperators` listing
    every operator that Weft does not have.
    """
    module = without_changes(program.graph_module)
    if module is None or needs_decomposition(module):
        program = decomposed(program)
        module = program.graph_module
    check_operators(module)
    return _Importer(program, module).run(shapes)


class _Importer(NodeImporter):
    def __init__(self, program: ExportedProgram, module: GraphModule) -> None:
        super().__init__()
        self.program = program
        self.module = module
        self.changed = {s.target for s in program.graph_signature.output_specs if s.kind in _STATES}

    def run(self, shapes: Shapes | None) -> Graph:
        """Imports the whole program."""
        scope = self._inputs(shapes)
        outputs = self.body(self.module, scope)
        states: dict[str, str] = {}
        for spec, (node, made) in zip(self.program.graph_signature.output_specs, outputs, strict=True):
            if spec.kind in _STATES:
                states[spec.target] = self.output(made, f"{spec.target}_next", node)
            elif spec.kind is OutputKind.TOKEN or _is_nothing(spec.arg):
                continue
            elif spec.kind is OutputKind.USER_OUTPUT:
                self.output(made, str(node), node)
            else:
                raise ModelError(
                    f"the program changes its input {spec.target!r}",
                    where=with_line(str(node), node) if isinstance(node, Node) else None,
                    hint="return the new value in the module, instead of writing it in place",
                )
        return declare_states(self.graph, states, {}) if states else self.graph

    def _inputs(self, shapes: Shapes | None) -> Scope:
        """Declares the inputs that a user gives, and buffers that change; other buffers, parameters and constants are weights."""
        specs = {s.arg.name: s for s in self.program.graph_signature.input_specs}
        nodes = [n for n in self.module.graph.nodes if n.op == "placeholder"]
        numbers = {n: specs[n.name].arg.value for n in nodes if isinstance(specs[n.name].arg, ConstantArgument)}
        held = [n for n in nodes if n not in numbers and specs[n.name].kind is not InputKind.USER_INPUT]
        names = {n: n.name for n in nodes if n not in numbers and n not in held}
        names |= {n: specs[n.name].target for n in held if specs[n.name].target in self.changed}
        found = self._shapes(names, shapes)
        scope = Scope(numbers)
        for n in nodes:
            if n in names:
                scope[n] = self.input(names[n], n.meta["val"], found[names[n]])
                self._default(specs[n.name])
            elif n in held:
                scope[n] = self._weight(specs[n.name])
        return scope

    def _default(self, spec: Any) -> None:
        """Has a state begin with the program's value for it."""
        if spec.target in self.changed:
            value = self._weight(spec)
            assert isinstance(value, CompileTimeConstant)
            self.graph.defaults[spec.target] = Constant(f"{spec.target}_initial", value.array)

    def _shapes(self, names: Mapping[Node, str], shapes: Shapes | None) -> dict[str, tuple[ExprLike, ...]]:
        """Returns the shapes of inputs by their names, of which the sizes that *shapes* gives are not symbolic."""
        for n in names:
            if not isinstance(n.meta.get("val"), torch.Tensor):
                raise ModelError(f"the input {n.name!r} is no tensor", hint="export the module with tensors for inputs")
        declared = {name: [_declared(s) for s in n.meta["val"].shape] for n, name in names.items()}
        ranges = {str(s): _range(r) for s, r in self.program.range_constraints.items()}
        sizes = InputShapes(shapes or {}, {name: r for name, r in ranges.items() if r is not None})
        return sizes.resolve(declared, self.graph)

    def _weight(self, spec: Any) -> CompileTimeConstant | Complex | None:
        """Returns a parameter, a buffer or a constant; tensors that modules share are one constant. A token is nothing."""
        if spec.kind is InputKind.TOKEN:
            return None
        held = self.program.constants if spec.target in self.program.constants else self.program.state_dict
        tensor = held.get(spec.target)
        if not isinstance(tensor, torch.Tensor):
            raise ModelError(f"the program's {spec.target!r} is no tensor", hint="export the module without it")
        return self.constant(tensor, spec.target)


def _is_nothing(result: Any) -> bool:
    """Tells whether a result is None, which is no output of a model's."""
    return isinstance(result, ConstantArgument) and result.value is None


def _declared(size: Any) -> int | str:
    return size if isinstance(size, int) else str(size)


def _range(found: Any) -> Dim | None:
    """Returns the sizes that a program says a symbol may have; None where it says no more than that there are some.

    PyTorch takes a size of 1 for a special case, and so says that others are 2 or more; Weft does not.
    """
    low, high = (int(v) if v.is_finite and v.is_Integer else None for v in (found.lower, found.upper))
    low = 1 if low is None or low <= 2 else low
    return None if low == 1 and high is None else Dim(low, high)
