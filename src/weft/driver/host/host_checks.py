"""Checks while a model runs: that indices and late sizes are inside of their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.driver.host.entry_plan import MOST_VALUES, check_requirement, defined, is_empty
from weft.driver.host.host_memory import HostMemory, elements_of
from weft.graph import Constant, Group, Guard, LateSize, Value
from weft.ir import INDEX, ONE, Const, Expr, Mul, Var, all_of, cast, free_vars, index, maximum, post_order
from weft.loop import Assert, Load, Stmt
from weft.support.text import in_format

MOST_BYTES = 1 << 56
"""More memory than any process can have, and so much less than 2**63 that sums of some such sizes do not overflow."""


@dataclass(frozen=True)
class GuardChecks:
    """The guards as statements: by the step after which their value is known, -1 for inputs and constants, or by the stage.

    A guard is at a stage if its limits have late sizes that become known only when its value is.
    """

    steps: Mapping[int, list[Stmt]]
    stages: Mapping[int, list[Stmt]]


def guard_checks(memory: HostMemory) -> GuardChecks:
    """Returns the guards of a graph."""
    fused = memory.fused
    made = {root: n for n, g in enumerate(fused.groups) for root in map(fused.root, g.outputs)}
    steps: dict[int, list[Stmt]] = {n: [] for n in range(-1, len(fused.groups))}
    stages: dict[int, list[Stmt]] = {n: [] for n in range(1, len(fused.late_sizes) + 1)}
    for g in fused.graph.guards:
        stage = fused.stage(*[end for limits in g.limits for end in limits])
        for v in (g.least, g.greatest):
            step = made.get(fused.root(v), -1)
            is_late = stage > 0 and fused.late_sizes[stage - 1][0] >= step
            checks = stages[stage] if is_late else steps[step]
            checks += [_check_limit(g, v, k, memory) for k in range(len(g.limits))]
    return GuardChecks(steps, stages)


def _check_limit(g: Guard, v: Value, k: int, memory: HostMemory) -> Stmt:
    """Checks element *k* of a value of a guard; the extremes of no elements are inside of any limits."""
    if isinstance(v, Constant):
        return _assert_inside(g, v, k, index(int(v.array.reshape(-1)[k])))
    views = memory.near(v).views()
    buffer = views.buffer(v)
    return views.around(_assert_inside(g, v, k, cast(Load(buffer, (views.begin(v) + k,)), INDEX)))


def _assert_inside(g: Guard, v: Value, k: int, value: Expr) -> Assert:
    """Stops the model with a message that names the node, the *value* of *v*, and from where to where it may be."""
    low, high = g.limits[k]
    held = [c for end, c in ((g.least, low <= value), (g.greatest, value <= high)) if end is v]
    symbolic = [e for e in (low, high) if not isinstance(e, Const)]
    texts = [str(e.value) if isinstance(e, Const) else f"{{{symbolic.index(e) + 1}}}" for e in (low, high)]
    message = f"{in_format(g.source)}: {g.what} {{0}} is outside of {texts[0]} to {texts[1]}"
    return Assert(all_of(held), message, (value, *symbolic))


def late_checks(memory: HostMemory, stage: int, late: LateSize) -> list[Stmt]:
    """Returns the checks of a late size that has just become known, and the graph's requirements on those known so far.

    One is that no number of bytes of this stage overflows: it would pass for a small one, and kernels would write past the end.
    """
    fused = memory.fused
    where = f"{in_format(late.source)}: " if late.source else ""
    size = Assert(late.size >= late.least, f"{where}{late.what} is {{0}}, which is no size", (late.size,))
    required = [r for r in fused.graph.requirements if fused.stage(r.condition, *r.values) == stage]
    asked = [v for v in (*fused.graph.outputs, *memory.kept) if fused.stage(*v.shape) == stage]
    bytes_ = [elements_of(v) * v.dtype.bytes for v in asked]
    bytes_ += [memory.plan.late[stage]] if stage in memory.plan.late else []
    held = all_of(dict.fromkeys(c for e in bytes_ for c in _without_overflow(e, stage, memory)))
    fits = Assert(held, f"{where}{late.what} is {{0}}, for which no memory is large enough", (late.size,))
    return [size, *([] if isinstance(held, Const) else [fits]), *map(check_requirement, required)]


def _without_overflow(e: Expr, stage: int, memory: HostMemory) -> Iterator[Expr]:
    """Yields the conditions that the late sizes in a number of bytes, and the products in it, are at most `MOST_BYTES`."""
    most = index(MOST_BYTES)
    yield from [v <= most for v in free_vars(e) if memory.fused.stage(v) == stage]
    for n in post_order(e):
        if isinstance(n, Mul) and memory.fused.stage(n) == stage:
            a, b = (n.b, n.a) if isinstance(n.a, Const) else (n.a, n.b)
            yield defined(a <= most // (abs(int(b.value)) if isinstance(b, Const) else maximum(b, ONE)))


def cannot_compute(group: Group, sizes: Sequence[Var]) -> Assert:
    """Returns the check that a group has nothing to compute where one of *sizes* is zero."""
    told = ", ".join([f"{v.name} is {{{n}}}" for n, v in enumerate(sizes[:MOST_VALUES])])
    where = in_format(group.source or group.name)
    nothing = all_of([is_empty(v) for v in group.outputs])
    return Assert(nothing, f"{where}: it can't be computed where {told}", tuple(sizes[:MOST_VALUES]))
