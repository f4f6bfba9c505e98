"""The meaning of a graph: each node's tensor expression as loops, run by the interpreter; the oracle of passes and backends.

Loops of more than `MOST_INTERPRETED` steps, of a microsecond each, are compiled instead, as they are: without a schedule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from weft.codegen.interp import Strings, run
from weft.driver.function import NativeFunction
from weft.driver.measure.same_seeds import same_seeds
from weft.graph import IF, Array, Constant, Graph, Node, Value, appends_of
from weft.ir import TRUE, Const, Expr, Var, const, free_vars, simplify, substitute
from weft.loop import For, Program, sub_statements
from weft.ops import OPERATORS, Operator, TensorType
from weft.support.dtypes import handle
from weft.support.errors import InputError
from weft.targets import host
from weft.te import Tensor, placeholder, to_program

Attributes: TypeAlias = tuple[tuple[str, Any], ...]

MOST_INTERPRETED: Final = 2_000_000
"""Steps of an operator's loops that are interpreted, in some seconds."""


@same_seeds()
def run_graph(graph: Graph, inputs: Mapping[str, Array]) -> list[Array]:
    """Returns the outputs of *graph* for *inputs* by name; raises `InputError` for sizes that it refuses."""
    strings = Strings()
    known = {v: _addresses(np.asarray(inputs[v.name]), strings) for v in graph.inputs}
    made = _outputs(graph, known, sizes_of(graph, known), strings)
    return [_texts(a, strings) if v.dtype is handle else a for v, a in zip(graph.outputs, made, strict=True)]


@same_seeds()
def values_of(graph: Graph, inputs: Mapping[str, Array]) -> dict[Value, Array]:
    """Returns the elements of every value that *graph* computes, for *inputs* by name; strings are not supported."""
    known = {v: np.asarray(inputs[v.name]) for v in graph.inputs}
    _outputs(graph, known, sizes_of(graph, known), Strings())
    return known


def _addresses(array: Array, strings: Strings) -> Array:
    """Returns an array of strings as the addresses that the interpreter knows them by, any other as it is."""
    if array.dtype.kind not in "OUT":
        return array
    first = len(strings.outside) + 1
    strings.outside += array.reshape(-1).tolist()
    return np.arange(first, first + array.size, dtype=np.uint64).reshape(array.shape)


def _texts(array: Array, strings: Strings) -> Array:
    made = np.empty(array.size, object)
    made[:] = [strings.outside[int(k) - 1] for k in array.flat]
    return made.reshape(array.shape)


def _outputs(graph: Graph, known: dict[Value, Array], sizes: dict[Var, Expr], strings: Strings) -> list[Array]:
    """Returns the outputs of a graph or region; late sizes are bound as soon as their values are known."""
    late = list(graph.late_sizes)
    waiting = list(graph.requirements)

    def array(v: Value) -> Array:
        return v.array if isinstance(v, Constant) else known[v]

    def settle() -> None:
        for found in [f for f in late if isinstance(f.value, Constant) or f.value in known]:
            late.remove(found)
            sizes[found.size] = const(int(array(found.value).reshape(-1)[found.element]), found.size.dtype)
        unknown = {f.size for f in late}
        for r in [r for r in waiting if unknown.isdisjoint(v for e in (r.condition, *r.values) for v in free_vars(e))]:
            waiting.remove(r)
            if simplify(substitute(r.condition, sizes)) is not TRUE:
                told = r.message.format(*[_int(simplify(substitute(v, sizes))) for v in r.values])
                raise InputError(told, hint="give inputs whose sizes agree")

    settle()
    for n in graph.nodes:
        if n.operator.has_regions:
            known.update(
                zip(
                    n.outputs,
                    _controlled(n, [None if v is None else array(v) for v in n.inputs], sizes, strings),
                    strict=True,
                )
            )
            settle()
            continue
        types = tuple([None if v is None else concrete(v.type, sizes) for v in n.inputs])
        attributes = tuple([(k, _concrete(a, sizes)) for k, a in n.attributes])
        given = [array(v) for v in n.inputs if v is not None]
        known.update(zip(n.outputs, _run(n.operator, types, attributes, given, strings), strict=True))
        settle()
    return [array(v) for v in graph.outputs]


def _controlled(n: Node, given: Sequence[Array | None], sizes: Mapping[Var, Expr], strings: Strings) -> list[Array]:
    """Returns the results of a node of control flow."""

    def region(name: str, values: Sequence[Array | None]) -> list[Array]:
        graph = n.attribute(name)
        bound = {v: a for v, a in zip(graph.inputs, values, strict=True) if a is not None}
        return _outputs(graph, bound, dict(sizes), strings)

    if n.operator is IF:
        assert given[0] is not None
        return region("then" if given[0].item() else "other", given[1:])
    states, (most, condition) = n.attribute("states"), given[:2]
    now: list[Array | None] = list(given[2 : 2 + states])
    captures = given[2 + states :]
    rows: list[list[Array]] = [[] for _ in range(n.attribute("scans"))]
    appends = appends_of(n)
    step, goes = 0, condition is None or bool(condition.item())
    while goes and (most is None or step < most.item()):
        go_on, *made = region("body", [np.asarray(step, np.int64), *now, *captures])
        for k, a in appends.items():
            made[k] = np.concatenate([np.asarray(now[k]), made[k]], a.axis)
        now[:], step, goes = made[:states], step + 1, bool(go_on.item())
        for column, row in zip(rows, made[states:], strict=True):
            column.append(row)
    return [*[a for a in now if a is not None], *_scans(n, rows), np.array([step], np.int64)]


def _scans(n: Node, rows: Sequence[list[Array]]) -> list[Array]:
    """Returns the scans of a loop from their rows; of no rows, those sizes that only a run tells are zero."""
    states = n.attribute("states")
    empty = [[0 if isinstance(s, Var) else int(s.value) for s in shape] for shape in n.attribute("shapes")[states:]]
    types = [v.dtype.numpy for v in n.outputs[states:-1]]
    return [np.stack(c) if c else np.zeros(e, t) for c, e, t in zip(rows, empty, types, strict=True)]


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
    op: Operator, types: tuple[TensorType | None, ...], attributes: Attributes, given: Sequence[Array], strings: Strings
) -> list[Array]:
    program, outputs = _program(op, types, attributes)
    made: list[Array] = [np.zeros([_int(s) for s in t.shape], t.dtype.numpy) for t in outputs]
    arrays = [*[np.require(a, requirements=("C", "A")) for a in given], *made]
    if op.on_host or steps_of(program) <= MOST_INTERPRETED:
        run(program, arrays, library=strings.library())
    else:
        _compiled(op, types, attributes)(*arrays)
    return made


def steps_of(program: Program) -> int:
    """Returns how often statements are run in a program of loops of constant extents; others count as one iteration."""
    count, stack = 0, [(f.body, 1) for f in program.functions]
    while stack:
        s, times = stack.pop()
        count += times
        inner = times * int(s.extent.value) if isinstance(s, For) and isinstance(s.extent, Const) else times
        stack += [(b, inner) for b in sub_statements(s)]
    return count


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


@lru_cache(maxsize=256)
def _compiled(op: Operator, types: tuple[TensorType | None, ...], attributes: Attributes) -> NativeFunction:
    program, _ = _program(op, types, attributes)
    return NativeFunction(program, host())


class InterpretingEvaluator:
    """Computes constants for graph passes as the reference does."""

    def evaluate(self, op: Operator, inputs: Sequence[Array | None], attributes: dict[str, Any]) -> list[Array]:
        """Returns the outputs of *op* for *inputs*."""
        assert op is OPERATORS[op.name]
        return run_operator(op.name, inputs, **attributes)
