"""What a graph means: every operator's tensor expression, evaluated element by element with NumPy.

Formulas are evaluated for all indices at once: index variables become arrays that broadcast against one another. What is no
formula, as a prefix sum, is interpreted as loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from tests.te.running import results

from weft.graph import Array, Constant, Fill, FusedGraph, Graph, MemoryPlan, Place, Value
from weft.ir import INTRINSICS, Apply, Binary, Cast, Const, Expr, Neg, Not, Reinterpret, Select, Var, post_order
from weft.ir import Node as IrNode
from weft.ops import Operator, TensorType
from weft.te import Compute, Placeholder, Read, ReduceAxis, Tensor, placeholder, topological

REDUCERS: dict[str, Any] = {
    "sum": np.sum,
    "max": np.max,
    "max_number": np.fmax.reduce,
    "min": np.min,
    "prod": np.prod,
}
Sizes = Mapping[Var, int]


def run_graph(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """Computes the outputs of *graph*, node by node."""
    known: dict[Value, Array] = dict(zip(graph.inputs, inputs, strict=True))
    sizes = _sizes(graph.inputs, inputs)

    def array(v: Value) -> Array:
        return v.array if isinstance(v, Constant) else known[v]

    for n in graph.nodes:
        given = [None if v is None else placeholder(v.shape, v.dtype) for v in n.inputs]
        outputs = n.operator(given, n.keywords)
        arrays = {t.op: array(v) for t, v in zip(given, n.inputs, strict=True) if t is not None and v is not None}
        known.update(zip(n.outputs, evaluate_tensors(outputs, arrays, sizes), strict=True))
    return [array(v) for v in graph.outputs]


def run_fused(fused: FusedGraph, inputs: Sequence[Array]) -> list[Array]:
    """Computes the outputs of the graph from its groups' tensor expressions and its aliases."""
    known: dict[Value, Array] = dict(zip(fused.graph.inputs, inputs, strict=True))
    sizes = _sizes(fused.graph.inputs, inputs)

    def array(v: Value) -> Array:
        root = fused.root(v)
        found = root.array if isinstance(root, Constant) else known[root]
        begin = fused.offset(v) // v.dtype.bytes
        shape = [_number(s, sizes) for s in v.shape]
        return np.asarray(found.reshape(-1)[begin : begin + prod(shape)].reshape(shape))

    for g in fused.groups:
        given, outputs = g.tensors()
        arrays = {t.op: array(v) for t, v in zip(given, g.inputs, strict=True)}
        known.update(zip(g.outputs, evaluate_tensors(outputs, arrays, sizes), strict=True))
    return [array(v) for v in fused.graph.outputs]


def run_planned(fused: FusedGraph, plan: MemoryPlan, inputs: Sequence[Array]) -> list[Array]:
    """Computes the outputs like a compiled model: every value where the plan puts it, in one arena that begins as garbage."""
    sizes = _sizes(fused.graph.inputs, inputs)
    arena = np.full(_number(plan.size, sizes), 0xA5, np.uint8)
    outputs = [np.full([_number(s, sizes) for s in v.shape], 77).astype(v.dtype.numpy) for v in fused.graph.outputs]
    memory = {
        Place.ARENA: lambda n: arena,
        Place.INPUT: lambda n: inputs[n].reshape(-1).view(np.uint8),
        Place.OUTPUT: lambda n: outputs[n].reshape(-1).view(np.uint8),
        Place.CONSTANT: lambda n: fused.constants[n].array.reshape(-1).view(np.uint8),
    }

    def array(v: Value) -> Array:
        where = plan.locations[v]
        shape = [_number(s, sizes) for s in v.shape]
        begin = _number(where.offset, sizes)
        found = memory[where.place](where.number)[begin : begin + prod(shape) * v.dtype.bytes]
        return found.view(v.dtype.numpy).reshape(shape)

    for g in fused.groups:
        given, made = g.tensors()
        arrays = {t.op: array(v) for t, v in zip(given, g.inputs, strict=True)}
        for v, a in zip(g.outputs, evaluate_tensors(made, arrays, sizes), strict=True):
            array(v)[...] = a
    return outputs


class Oracle:
    """An evaluator for the passes."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def evaluate(self, op: Operator, inputs: Sequence[Array | None], attributes: dict[str, Any]) -> list[Array]:
        self.calls.append(op.name)
        graph = Graph()
        values = [None if a is None else graph.constant(a) for a in inputs]
        for v in graph.add_many(op.name, values, **attributes):
            graph.output(v)
        return run_graph(graph, [])

    def prepare(self, op: Operator, inputs: Sequence[TensorType | None], attributes: dict[str, Any]) -> Fill:
        def fill(given: Sequence[Array | None], outputs: Sequence[Array]) -> None:
            for out, made in zip(outputs, self.evaluate(op, given, attributes), strict=True):
                out[...] = made

        return fill


def evaluate_tensors(outputs: Sequence[Tensor], arrays: Mapping[Any, Array], sizes: Sizes) -> list[Array]:
    known: dict[tuple[Any, int], Array] = {(op, 0): a for op, a in arrays.items()}
    stages = topological(outputs)
    for op in stages:
        assert not isinstance(op, Placeholder) or (op, 0) in known, f"{op.name} is needed, which is not an input"
    if not all(isinstance(op, Compute | Placeholder) for op in stages):
        return results(
            [op.outputs[0] for op in arrays], outputs, *arrays.values(), **{v.name: n for v, n in sizes.items()}
        )
    for op in stages:
        if isinstance(op, Compute):
            known.update(((op, k), a) for k, a in enumerate(_compute(op, known, sizes)))
    return [known[t.op, t.index] for t in outputs]


def _compute(op: Compute, known: Mapping[tuple[Any, int], Array], sizes: Sizes) -> list[Array]:
    axes: list[tuple[Var, Expr]] = list(zip(op.axes, op.shape, strict=True))
    if op.reduction is not None:
        axes += [(a, a.extent) for a in op.reduction.axes]
    shape = [_number(e, sizes) for _, e in axes]
    env: dict[IrNode, Any] = {v: np.int64(n) for v, n in sizes.items()}
    for d, (v, _) in enumerate(axes):
        env[v] = np.arange(shape[d]).reshape([-1 if k == d else 1 for k in range(len(shape))])
    full = [np.broadcast_to(_expr(e, env, known), shape) for e in op.values]
    if op.reduction is None:
        return [np.array(a, v.dtype.numpy) for a, v in zip(full, op.values, strict=True)]
    where = np.broadcast_to(_expr(op.reduction.condition, env, known), shape)
    over = tuple(range(len(op.axes), len(axes)))
    if op.reduction.reducer.name == "extremes":
        return [
            np.asarray(fn(np.where(where, v, np.asarray(_expr(e, env, known))), axis=over)).astype(v.dtype)
            for fn, v, e in zip((np.min, np.max), full, op.reduction.identity(), strict=True)
        ]
    identity = _expr(op.reduction.identity()[0], env, known)
    [value] = full
    wide = value.astype(np.float64) if op.values[0].dtype.is_float else value
    reduced = REDUCERS[op.reduction.reducer.name](np.where(where, wide, identity), axis=over, initial=identity)
    return [np.asarray(reduced).astype(op.values[0].dtype.numpy)]


def _expr(root: Expr, env: Mapping[IrNode, Any], known: Mapping[tuple[Any, int], Array]) -> Any:
    done = dict(env)
    with np.errstate(all="ignore"):
        for e in post_order(root):
            if e not in done:
                done[e] = _node(e, [done[k] for k in e.children()], known)
    return done[root]


def _node(e: IrNode, kids: list[Any], known: Mapping[tuple[Any, int], Array]) -> Any:
    if isinstance(e, Const):
        return np.asarray(e.value, e.dtype.numpy)[()]
    if isinstance(e, Read):
        array = known[e.tensor.op, e.tensor.index]
        return array[tuple([np.clip(k, 0, n - 1) for k, n in zip(kids, array.shape, strict=True)])]
    if isinstance(e, Binary):
        return np.asarray(type(e).numpy(*kids))
    if isinstance(e, Select):
        return np.where(*kids)
    if isinstance(e, Apply):
        return INTRINSICS[e.fn].reference(*kids)
    if isinstance(e, Cast):
        return kids[0] != 0 if e.dtype.is_bool else np.asarray(kids[0]).astype(e.dtype.numpy)
    if isinstance(e, Reinterpret):
        return np.asarray(kids[0]).astype(e.a.dtype.numpy).view(e.dtype.numpy)
    assert isinstance(e, Neg | Not), f"no meaning for {type(e).__name__}"
    return -kids[0] if isinstance(e, Neg) else np.logical_not(kids[0])


def _number(e: Expr, sizes: Sizes) -> int:
    env: dict[IrNode, Any] = {v: n for v, n in sizes.items()}  # noqa: C416  (widens the type)
    return int(_expr(e, env, {}))


def _sizes(values: Sequence[Value], arrays: Sequence[Array]) -> dict[Var, int]:
    pairs = [(s, n) for v, a in zip(values, arrays, strict=True) for s, n in zip(v.shape, a.shape, strict=True)]
    return {s: n for s, n in pairs if isinstance(s, Var) and not isinstance(s, ReduceAxis)}
