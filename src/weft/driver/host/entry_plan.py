"""`plan`, one of the two entries of a model: it checks a call's shapes, and tells the outputs' shapes and the arena's size.

def plan(in0_shape, out0_shape, arena_needed):
    batch = in0_shape[0]
    assert 0 <= batch
    assert in0_shape[1] == 24
    assert 0 < batch or batch * 10 == 0
    out0_shape[0] = batch; out0_shape[1] = 10
    arena_needed[0] = batch * 256 if 0 < batch else -1

Kernels compute with sizes of at least one. A call with a size of zero has no need of them where all that it makes is empty, which
is what an arena of -1 bytes says; outputs that have elements all the same are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from weft.graph import FusedGraph, Graph, MemoryPlan, Requirement, Value, bound_lengths, state_pairs
from weft.ir import (
    INDEX,
    ONE,
    ZERO,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Node,
    Var,
    all_of,
    eq,
    free_vars,
    index,
    map_nodes,
    maximum,
    select,
)
from weft.loop import Assert, Buffer, Entry, Function, Let, Load, Stmt, Store, seq
from weft.support.errors import ModelError

NOTHING_TO_RUN = -1
"""The arena of a call that computes nothing."""

LATE = -1
"""The size of an output's dimension that is known only when `main` has run."""

MOST_VALUES = 4
"""Values that the message of a check may name."""


def size_sources(graph: Graph) -> dict[Var, tuple[int, int]]:
    """Returns, for each symbolic size, an input and the dimension of it that tells the size.

    Late sizes have no such place. Raises `ModelError` for a size that no input shows as it is.
    """
    late = {found.size for found in graph.late_sizes}
    found: dict[Var, tuple[int, int]] = {}
    known = {*late, *bound_lengths(graph)}
    for n, shape in enumerate(called_shapes(graph)):
        for d, s in enumerate(shape):
            if isinstance(s, Var):
                found.setdefault(s, (n, d))
    for v in (*graph.inputs, *graph.outputs):
        for s in v.shape:
            for var in free_vars(s):
                if var not in found and var not in known:
                    raise ModelError(
                        f"the size {var.name} of {v.name} is not a dimension of any input",
                        hint=f'give it a number: shapes={{"{var.name}": 1}}',
                    )
    return found


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
    used = [var for var in sources if var in _sizes_of_kernels(fused)]
    steps: list[Stmt] = [*_checks(fused, sources, ins, used)]
    left = {p.output: p.left_shape for p in state_pairs(graph)}
    shapes = [(outs[n], d, s) for n, v in enumerate(graph.outputs) for d, s in enumerate(left.get(n, v.shape))]
    told = [(out, d, index(LATE) if fused.stage(s) else defined(s)) for out, d, s in shapes]
    steps += [Store(out, (index(d),), s, None) for out, d, s in told]
    arena = select(_are_positive(used), defined(plan.size), index(NOTHING_TO_RUN)) if used else plan.size
    steps.append(Store(needed, (ZERO,), arena, None))
    body = with_bound_lengths(graph, seq(*steps))
    for var, (n, d) in reversed(sources.items()):
        body = Let(var, Load(ins[n], (index(d),)), body)
    words = [f"in{n}.shape" for n in range(len(ins))] + [f"out{n}.shape" for n in range(len(outs))]
    return Function("plan", (*ins, *outs, needed), body, (Entry("plan", (*words, "arena_needed")),))


def _checks(
    fused: FusedGraph, sources: Mapping[Var, tuple[int, int]], ins: Sequence[Buffer], used: Sequence[Var]
) -> Iterator[Assert]:
    """Yields the checks of a call: its inputs' sizes, what the graph requires of them, and outputs where one *used* is zero."""
    graph = fused.graph
    for n, d in sources.values():
        yield _check_size(graph.inputs[n], d, ins[n])
    for n, (v, shape) in enumerate(zip(graph.inputs, called_shapes(graph), strict=True)):
        yield from [_check(v, d, s, ins[n]) for d, s in enumerate(shape) if sources.get(_var(s)) != (n, d)]
    yield from [check_requirement(r) for r in graph.requirements if not fused.stage(r.condition, *r.values)]
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


def _are_positive(sizes: Sequence[Var]) -> Expr:
    return all_of(var > ZERO for var in sizes)


def defined(e: Expr) -> Expr:
    """Returns *e* with divisors that are zero taken for one: what a size of zero is divided by is of no account."""

    def guarded(n: Node) -> Node | None:
        if isinstance(n, FloorDiv | FloorMod) and not isinstance(n.b, Const):
            return n.a // maximum(n.b, ONE) if isinstance(n, FloorDiv) else n.a % maximum(n.b, ONE)
        return None

    return map_nodes(e, guarded)


def _var(e: Expr) -> Var:
    return e if isinstance(e, Var) else Var("none")


def _check(v: Value, d: int, expected: Expr, shape: Buffer) -> Assert:
    """Checks one size against the model's."""
    given = Load(shape, (index(d),))
    wanted = str(expected.value) if isinstance(expected, Const) else "{1}"
    message = f"input {v.name}: dimension {d} is {{0}}, but the model takes {wanted}"
    return Assert(eq(given, defined(expected)), message, (given, defined(expected)))


def _check_size(v: Value, d: int, shape: Buffer) -> Assert:
    given = Load(shape, (index(d),))
    return Assert(index(0) <= given, f"input {v.name}: dimension {d} is {{0}}, which is no size", (given,))


def _check_empty(v: Value, name: str, used: Sequence[Var], *, is_late: bool) -> Assert:
    """Checks that an output is empty where a size is zero; of one of late sizes, only the run can tell."""
    shown = used[:MOST_VALUES]
    sizes = ", ".join(f"{var.name} is {{{n}}}" for n, var in enumerate(shown))
    message = f"where {sizes}, the output {name} can't be computed: only a model compiled for that size, by shapes, can"
    empty = _are_positive(used) if is_late else _are_positive(used) | is_empty(v)
    return Assert(empty, message, tuple(shown))
