"""Checks while a model runs: that indices and late sizes are inside of their limits."""

from __future__ import annotations

from weft.driver.host.entry_plan import MOST_VALUES, check_requirement, is_empty
from weft.driver.host.host_memory import HostMemory
from weft.graph import Constant, Group, Guard, LateSize, Value
from weft.ir import INDEX, ZERO, Const, Expr, all_of, cast, free_vars, index
from weft.loop import Assert, Call, If, Load, Stmt


def guard_checks(memory: HostMemory) -> dict[int, list[Stmt]]:
    """Returns the guards as statements, by the step after which their value is known: -1 for inputs and constants."""
    made = {root: n for n, g in enumerate(memory.fused.groups) for root in map(memory.fused.root, g.outputs)}
    steps: dict[int, list[Stmt]] = {n: [] for n in range(-1, len(memory.fused.groups))}
    for g in memory.fused.graph.guards:
        for v in (g.least, g.greatest):
            step = made.get(memory.fused.root(v), -1)
            steps[step] += [_check_limit(g, v, k, memory) for k in range(len(g.limits))]
    return steps


def _check_limit(g: Guard, v: Value, k: int, memory: HostMemory) -> Stmt:
    """Checks element *k* of a value of a guard; the extremes of no elements are inside of any limits."""
    if isinstance(v, Constant):
        return _assert_inside(g, v, k, index(int(v.array.reshape(-1)[k])))
    views = memory.views()
    buffer = views.buffer(v)
    return views.around(_assert_inside(g, v, k, cast(Load(buffer, (views.begin(v) + k,)), INDEX)))


def _assert_inside(g: Guard, v: Value, k: int, value: Expr) -> Assert:
    """Stops the model with a message that names the node, the *value* of *v*, and from where to where it may be."""
    low, high = g.limits[k]
    held = [c for end, c in ((g.least, low <= value), (g.greatest, value <= high)) if end is v]
    symbolic = [e for e in (low, high) if not isinstance(e, Const)]
    texts = [str(e.value) if isinstance(e, Const) else f"{{{symbolic.index(e) + 1}}}" for e in (low, high)]
    message = f"{_plain(g.source)}: {g.what} {{0}} is outside of {texts[0]} to {texts[1]}"
    return Assert(all_of(held), message, (value, *symbolic))


def _plain(source: str) -> str:
    """Returns the name of a node for a message that is a format."""
    return source.replace("{", "{{").replace("}", "}}")


def late_checks(memory: HostMemory, stage: int, late: LateSize) -> list[Stmt]:
    """Returns the checks of a late size that has just become known, and of what the graph requires of those known so far."""
    fused = memory.fused
    where = f"{_plain(late.source)}: " if late.source else ""
    size = Assert(late.size >= ZERO, f"{where}{late.what} is {{0}}, which is no size", (late.size,))
    required = [r for r in fused.graph.requirements if fused.stage(r.condition, *r.values) == stage]
    return [size, *map(check_requirement, required)]


def unless_empty(memory: HostMemory, group: Group, call: Call) -> Stmt:
    """Returns the call of a kernel for tensors of late sizes, if none of these is zero: there is nothing to compute then.

    Kernels compute with sizes of at least one. Outputs that have elements all the same are refused.
    """
    shapes = [s for v in (*group.inputs, *group.outputs) for s in v.shape]
    sizes = [v for v in dict.fromkeys(v for s in shapes for v in free_vars(s)) if memory.fused.stage(v)]
    if not sizes:
        return call
    told = ", ".join([f"{v.name} is {{{n}}}" for n, v in enumerate(sizes[:MOST_VALUES])])
    where = _plain(group.source or group.name)
    nothing = all_of([is_empty(v) for v in group.outputs])
    check = Assert(nothing, f"{where}: it can't be computed where {told}", tuple(sizes[:MOST_VALUES]))
    follows = all(any(s is v for s in o.shape) for o in group.outputs for v in sizes)
    return If(all_of([v > ZERO for v in sizes]), call, None if follows else check)
