"""What a graph means: each node's tensor expression as loops, run by the interpreter; the oracle of graph passes and backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from weft.codegen.interp import run
from weft.graph import Array, Constant, Graph, Value
from weft.graph.core.graph import Attributes
from weft.ir import TRUE, Const, Expr, Var, const, simplify, substitute
from weft.loop import Program
from weft.ops import OPERATORS, Operator, TensorType
from weft.support.errors import InputError
from weft.te import Tensor, placeholder, to_program


def run_graph(graph: Graph, inputs: Mapping[str, Array]) -> list[Array]:
    """Returns the outputs of *graph* for *inputs* by name; raises `InputError` for sizes that it refuses."""
    known = {v: np.asarray(inputs[v.name]) for v in graph.inputs}
    sizes = sizes_of(graph, known)
    for r in graph.requirements:
        values = [simplify(substitute(v, sizes)) for v in r.values]
        if simplify(substitute(r.condition, sizes)) is not TRUE:
            raise InputError(r.message.format(*[_int(v) for v in values]))

    def array(v: Value) -> Array:
        return v.array if isinstance(v, Constant) else known[v]

    for n in graph.nodes:
        types = tuple([None if v is None else concrete(v.type, sizes) for v in n.inputs])
        attributes = tuple([(k, _concrete(a, sizes)) for k, a in n.attributes])
        given = [array(v) for v in n.inputs if v is not None]
        known.update(zip(n.outputs, _run(n.operator, types, attributes, given), strict=True))
    return [array(v) for v in graph.outputs]


def run_operator(op: str, inputs: Sequence[Array | None], **attributes: Any) -> list[Array]:
    """Returns the outputs of one operator, for arrays (None for an optional input that is absent)."""
    graph = Graph()
    values = [None if a is None else graph.constant(np.asarray(a)) for a in inputs]
    for v in graph.add_many(op, values, **attributes):
        graph.output(v)
    return run_graph(graph, {})


def sizes_of(graph: Graph, arrays: Mapping[Value, Array]) -> dict[Var, Expr]:
    """Returns the symbolic sizes of *graph* that its inputs' arrays tell."""
    pairs = [(s, n) for v, a in arrays.items() for s, n in zip(v.shape, a.shape, strict=True)]
    return {s: const(n, s.dtype) for s, n in pairs if isinstance(s, Var)}


def concrete(t: TensorType, sizes: Mapping[Var, Expr]) -> TensorType:
    """Returns a type with numbers for symbolic sizes."""
    return TensorType(tuple([simplify(substitute(s, sizes)) for s in t.shape]), t.dtype)


def _concrete(attribute: Any, sizes: Mapping[Var, Expr]) -> Any:
    if isinstance(attribute, tuple):
        return tuple([_concrete(a, sizes) for a in attribute])
    return simplify(substitute(attribute, sizes)) if isinstance(attribute, Expr) else attribute


def _run(
    op: Operator, types: tuple[TensorType | None, ...], attributes: Attributes, given: Sequence[Array]
) -> list[Array]:
    program, outputs = _program(op, types, attributes)
    made = [np.zeros([_int(s) for s in t.shape], t.dtype.numpy) for t in outputs]
    run(program, [*[np.require(a, requirements=("C", "A")) for a in given], *made])
    return made


def _int(size: Expr) -> int:
    assert isinstance(size, Const)
    return int(size.value)


@lru_cache(maxsize=2048)
def _program(
    op: Operator, types: tuple[TensorType | None, ...], attributes: Attributes
) -> tuple[Program, tuple[Tensor, ...]]:
    tensors = [None if t is None else placeholder(t.shape, t.dtype) for t in types]
    outputs = op(tensors, dict(attributes))
    return to_program([t for t in tensors if t is not None], outputs), outputs


class InterpretingEvaluator:
    """Computes constants for graph passes as the reference does."""

    def evaluate(self, op: Operator, inputs: Sequence[Array | None], attributes: dict[str, Any]) -> list[Array]:
        """Returns the outputs of *op* for *inputs*."""
        assert op is OPERATORS[op.name]
        return run_operator(op.name, inputs, **attributes)
