"""`plan`, one of a model's two entry functions: checks the shapes of a call, and computes the outputs' shapes and the arena's
size.

def plan(in0_shape, out0_shape, arena_needed):
    batch = in0_shape[0]
    assert 0 <= batch
    assert in0_shape[1] == 24
    assert 0 < batch or batch * 10 == 0
    out0_shape[0] = batch; out0_shape[1] = 10
    arena_needed[0] = batch * 256 if 0 < batch else -1

Kernels compute with sizes of at least one. A call with a size of zero has no need of them where all of its outputs are empty,
which an arena of -1 bytes tells; outputs that have elements all the same are refused. Of a size that was declared to begin at
zero, `main` looks at each kernel instead (`HostBody.of_sizes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.graph import Dimension, FusedGraph, Graph, MemoryPlan, Requirement, Value, bound_lengths, state_pairs
from weft.ir import (
    INDEX,
    ONE,
    ZERO,
    Add,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Mul,
    Node,
    Sub,
    Var,
    all_of,
    eq,
    free_vars,
    index,
    map_nodes,
    maximum,
    prove,
    select,
)
from weft.loop import Assert, Buffer, Entry, Function, Let, Load, Stmt, Store, seq
from weft.ops import size_bounds
from weft.support.errors import ModelError
from weft.support.text import in_format

NOTHING_TO_RUN = -1
"""The arena of a call that computes nothing."""

LATE = -1
"""The size of an output's dimension that is known only when `main` has run."""

MOST_VALUES = 4
"""Values that the message of a check may name."""


@dataclass(frozen=True)
class SizeSource:
    """Where a call shows a symbolic size: dimension *dimension* of input *number* is *factor* times it, plus *offset*."""

    number: int
    dimension: int
    factor: int = 1
    offset: int = 0

    @property
    def is_direct(self) -> bool:
        """Whether the dimension is the size itself."""
        return self.factor == 1 and self.offset == 0

    def size(self, given: Expr) -> Expr:
        """Returns the symbolic size where the dimension is *given*."""
        return given if self.is_direct else (given - self.offset) // self.factor


def size_sources(graph: Graph) -> dict[Var, SizeSource]:
    """Returns the source of each symbolic size: a dimension that is the size itself, if one is, else one that it is a part of.

    Late sizes have none. Raises `ModelError` for a size that no input shows.
    """
    known = {*[found.size for found in graph.late_sizes], *bound_lengths(graph)}
    shown = [(s, n, d) for n, shape in enumerate(called_shapes(graph)) for d, s in enumerate(shape)]
    linear = [(unit, SizeSource(n, d, factor, offset)) for s, n, d in shown for unit, factor, offset in [_linear(s)]]
    found: dict[Var, SizeSource] = {}
    for unit, source in sorted(linear, key=lambda of: not of[1].is_direct):
        if isinstance(unit, Var) and source.factor > 0:
            found.setdefault(unit, source)
    for v in (*graph.inputs, *graph.outputs):
        for s in v.shape:
            for var in free_vars(s):
                if var not in found and var not in known:
                    raise ModelError(
                        f"the size {var.name} of {v.name} is not a dimension of any input",
                        hint=f'give it a number: shapes={{"{var.name}": 1}}',
                    )
    return found


def _linear(size: Expr) -> tuple[Expr, int, int]:
    """Returns an expression, a factor and an offset that make *size*."""
    factor, offset = 1, 0
    if isinstance(size, Add | Sub) and isinstance(size.b, Const):
        offset = int(size.b.value) * (1 if isinstance(size, Add) else -1)
        size = size.a
    if isinstance(size, Mul) and isinstance(size.b, Const):
        factor, size = int(size.b.value), size.a
    return size, factor, offset


def called_shapes(graph: Graph) -> list[tuple[Expr, ...]]:
    """Returns the shapes with which a call is given the inputs: those of states that grow are as long as they are by now."""
    own = {p.input: p.called_shape for p in state_pairs(graph)}
    return [own.get(n, v.shape) for n, v in enumerate(graph.inputs)]


def with_bound_lengths(graph: Graph, body: Stmt) -> Stmt:
    """Returns *body* in the scope of the symbols that the graph has for the lengths of states."""
    for var, value in bound_lengths(graph).items():
        body = Let(var, value, body)
    return body


def plan_function(fused: FusedGraph, plan: MemoryPlan) -> Function:
    """Builds the function that checks a call's sizes, and tells those of its outputs and of the arena that it needs."""
    graph = fused.graph
    ins = [Buffer(f"in{n}_shape", (v.rank,), INDEX) for n, v in enumerate(graph.inputs)]
    outs = [Buffer(f"out{n}_shape", (v.rank,), INDEX) for n, v in enumerate(graph.outputs)]
    needed = Buffer("arena_needed", (index(1),), INDEX)
    sources = size_sources(graph)
    kernels = _sizes_of_kernels(fused)
    used = [var for var in sources if var in kernels and var.limits is None]
    steps: list[Stmt] = [*_checks(fused, sources, ins, used)]
    left = {p.output: p.left_shape for p in state_pairs(graph)}
    shapes = [(outs[n], d, s) for n, v in enumerate(graph.outputs) for d, s in enumerate(left.get(n, v.shape))]
    told = [(out, d, index(LATE) if fused.stage(s) else defined(s)) for out, d, s in shapes]
    steps += [Store(out, (index(d),), s, None) for out, d, s in told]
    arena = select(_are_positive(used), defined(plan.size), index(NOTHING_TO_RUN)) if used else plan.size
    steps.append(Store(needed, (ZERO,), arena, None))
    body = with_bound_lengths(graph, seq(*steps))
    for var, source in reversed(sources.items()):
        body = Let(var, source.size(Load(ins[source.number], (index(source.dimension),))), body)
    words = [f"in{n}.shape" for n in range(len(ins))] + [f"out{n}.shape" for n in range(len(outs))]
    return Function("plan", (*ins, *outs, needed), body, (Entry("plan", (*words, "arena_needed")),))


def _checks(
    fused: FusedGraph, sources: Mapping[Var, SizeSource], ins: Sequence[Buffer], used: Sequence[Var]
) -> Iterator[Assert]:
    """Yields the checks of a call: its inputs' sizes, the graph's requirements on them, and outputs where one *used* is zero."""
    graph = fused.graph
    ranges, called = {d.unit: d for d in graph.dimensions.values()}, called_shapes(graph)
    for var, source in sources.items():
        v, shape = graph.inputs[source.number], ins[source.number]
        dimension = ranges.get(var)
        if dimension is not None and called[source.number][source.dimension] is dimension.size:
            yield _check_range(v, source.dimension, dimension, shape)
        else:
            yield _check_size(var, v, source, shape)
    direct = {(s.number, s.dimension) for s in sources.values() if s.is_direct}
    for n, (v, sizes) in enumerate(zip(graph.inputs, called, strict=True)):
        yield from [_check(v, d, s, ins[n]) for d, s in enumerate(sizes) if (n, d) not in direct]
    yield from [check_requirement(r) for r in graph.requirements if not fused.stage(r.condition, *r.values)]
    for size, v in _computed_sizes(fused).items():
        where = v.producer.source if v.producer is not None and v.producer.source else v.name
        # not which one: layouts have dimensions in other places, and images for lines
        message = f"{in_format(where)}: a dimension of its result is {{0}}, which is no size"
        yield Assert(defined(size) >= ZERO, message, (defined(size),))
    if used:
        for v, name in zip(graph.outputs, graph.output_names, strict=True):
            yield _check_empty(v, name, used, is_late=bool(fused.stage(*v.shape)))


def check_requirement(r: Requirement) -> Assert:
    """Returns the check of a condition of the graph's."""
    return Assert(defined(r.condition), r.message, r.values)


def is_empty(v: Value) -> Expr:
    """Returns the condition that *v* has no elements."""
    shape = [defined(s) for s in v.shape]
    elements: Expr = ONE
    for s in shape:
        elements = elements * s
    whole = all_of(s >= ZERO for s in shape if not isinstance(s, Const))
    return all_of([whole, eq(elements, ZERO)])


def _sizes_of_kernels(fused: FusedGraph) -> set[Var]:
    """Returns the symbolic sizes that some kernel computes with; others may be anything."""
    groups = [g for f in fused.all_graphs for g in f.groups]
    values = [v for g in groups for v in (*g.inputs, *g.outputs)]
    shown = {var for v in (*values, *fused.graph.outputs) for s in v.shape for var in free_vars(s)}
    return shown | {var for g in groups for s in g.sizes for var in free_vars(s)}


def _computed_sizes(fused: FusedGraph) -> dict[Expr, Value]:
    """Returns the sizes that the model computes of others and that may be negative, each with a value that has it.

    A convolution of n - 4 rows is one: where n is 3, no memory is to be planned, and no kernel may run.
    """
    found: dict[Expr, Value] = {}
    for v in [v for g in fused.groups for n in g.nodes for v in n.outputs]:
        for s in v.shape:
            if not isinstance(s, Const | Var) and s not in found and not fused.stage(s) and _may_be_negative(s):
                found[s] = v
    return found


def _may_be_negative(size: Expr) -> bool:
    bounds = size_bounds(size)
    for v in free_vars(size):
        if v.limits is not None:
            bounds = bounds.bind(v, *v.limits)
    return not prove(size >= ZERO, bounds)


def _are_positive(sizes: Sequence[Var]) -> Expr:
    return all_of(var > ZERO for var in sizes)


def defined(e: Expr) -> Expr:
    """Returns *e* with divisors that are zero taken for one: the divisor of a size of zero does not matter."""

    def guarded(n: Node) -> Node | None:
        if isinstance(n, FloorDiv | FloorMod) and not isinstance(n.b, Const):
            return n.a // maximum(n.b, ONE) if isinstance(n, FloorDiv) else n.a % maximum(n.b, ONE)
        return None

    return map_nodes(e, guarded)


def _dimension_text(v: Value, d: int) -> str:
    return f"input {in_format(v.name)}: dimension {d}"


def _within(size: Expr, low: int, high: int | None) -> Expr:
    """Returns the condition that *size* is in a range, of which None is no greatest."""
    return all_of([low <= size, *([] if high is None else [size <= high])])


def _check(v: Value, d: int, expected: Expr, shape: Buffer) -> Assert:
    """Checks one size against the model's."""
    given = Load(shape, (index(d),))
    wanted = str(expected.value) if isinstance(expected, Const) else "{1}"
    message = f"{_dimension_text(v, d)} is {{0}}, but the model takes {wanted}"
    return Assert(eq(given, defined(expected)), message, (given, defined(expected)))


def _check_size(var: Var, v: Value, source: SizeSource, shape: Buffer) -> Assert:
    """Checks that a symbolic size is one: in its limits, if it has such, else not negative."""
    given = Load(shape, (index(source.dimension),))
    message = f"{_dimension_text(v, source.dimension)} is {{0}}, which is no size"
    return Assert(_within(source.size(given), *(var.limits or (0, None))), message, (given,))


def _check_range(v: Value, d: int, dimension: Dimension, shape: Buffer) -> Assert:
    """Checks that a dimension is of one of the sizes that the model is compiled for."""
    given, sizes = Load(shape, (index(d),)), dimension.sizes
    held = [_within(given, sizes.low, sizes.high)]
    held += [] if sizes.multiple == 1 else [eq(given % sizes.multiple, ZERO)]
    message = f"{_dimension_text(v, d)}, {dimension.name}, is {{0}}, but the model was compiled for {sizes.words}"
    return Assert(all_of(held), message, (given,))


def _check_empty(v: Value, name: str, used: Sequence[Var], *, is_late: bool) -> Assert:
    """Checks that an output is empty where a size is zero; of one of late sizes, only the run can tell."""
    shown = used[:MOST_VALUES]
    sizes = ", ".join(f"{var.name} is {{{n}}}" for n, var in enumerate(shown))
    told = f"where {sizes}, the output {in_format(name)} can't be computed"
    message = f"{told}: only a model compiled for that size, by shapes, can"
    empty = _are_positive(used) if is_late else _are_positive(used) | is_empty(v)
    return Assert(empty, message, tuple(shown))
