"""The statements of control flow: branches, and loops whose states alternate between two copies.

    counter[0] = 0                                  step, and whether to go on
    going[0] = True
    copy(s at 0, s0)
    while counter[0] < most[0] and going[0]:
        step = let(counter[0])
        before = view(s, step % 2 * n); after = view(s, (1 - step % 2) * n)
        ...                                         the body reads `before`, and writes `after` and `going`
        counter[0] = step + 1
    copy(y, s at (counter[0] % 2 * n))

A state that an iteration updates where it is (`loop_states`) has one copy, which is the result's memory. One that grows is in
kept memory: an iteration writes the new one beside it, and copies it there; or the rows alone that it appends
(`append_in_place`), and copies these to its end, which moves the state no more often than its memory has to grow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.driver.host.crossings import uses_processor
from weft.driver.host.entry_plan import check_requirement
from weft.driver.host.host_body import Ask, HostBody
from weft.driver.host.host_memory import HostMemory, Views, arenas_of, elements_of, kept_buffer, kept_buffers
from weft.driver.host.tensors_there import RegionThere
from weft.graph import LOOP, FusedGraph, Graph, Group, MemoryPlan, Place, Value, alternating_states, appends_of
from weft.ir import INDEX, ONE, TRUE, ZERO, Expr, Var
from weft.loop import Alloc, Buffer, If, Let, Load, Stmt, Store, View, While, copy, late_memory, seq
from weft.support.dtypes import u8


def control_flow(body: HostBody, step: int, group: Group) -> Stmt:
    """Returns the statements of a node of control flow."""
    code = _Control(body, step, group, body.memory.views(), body.memory.plan.regions[step])
    made = code.loop() if group.nodes[0].operator is LOOP else code.branches()
    return code.views.around(made)


@dataclass(frozen=True, eq=False)
class _Control:
    """Writes one node; *views* has the views of outer memory that it needs, *plans* the memory plans of its regions."""

    body: HostBody
    step: int
    group: Group
    views: Views
    plans: Sequence[MemoryPlan]
    found: dict[Value, Buffer] = field(default_factory=dict)

    @property
    def memory(self) -> HostMemory:
        """The memory of the graph around."""
        return self.body.memory

    def region(
        self,
        fused: FusedGraph,
        plan: MemoryPlan,
        ins: Sequence[Buffer],
        outs: Sequence[Buffer],
        ask: Ask,
        take: Ask | None = None,
        last: Sequence[Stmt] = (),
    ) -> Stmt:
        """Returns the statements of a region, with its arena."""
        m = self.memory
        arena = Buffer(f"region{next(m.names)}", (plan.size,), u8)
        inner = HostMemory(
            fused, plan, m.constants, m.weights, ins, outs, arenas_of(plan, arena), m.names, kept_buffers(fused, plan)
        )
        there = RegionThere(inner, m, self.workspaces[0]) if uses_processor(fused) else None
        inner = inner if there is None else there.memory
        required = [r for r in fused.graph.requirements if not fused.stage(r.condition, *r.values)]
        body = HostBody(inner, self.body.kernels, ask, self.body.control, take, tuple(last)).statements()
        whole = self.given(self.workspaces[0])
        made = seq(*map(check_requirement, required), body)
        return View(arena, whole, ZERO, made if there is None else there.around(made))

    @property
    def workspaces(self) -> Sequence[Value]:
        """The buffers that the node works in: see `plan_memory.region_workspaces`."""
        return self.memory.plan.workspaces[self.step]

    def given(self, value: Value) -> Buffer:
        """Returns a buffer that begins where *value* of the graph around does."""
        if value not in self.found:
            self.found[value] = self._given(value)
        return self.found[value]

    def _given(self, value: Value) -> Buffer:
        buffer, begin = self.views.buffer(value), self.views.begin(value)
        if begin is ZERO:
            return buffer
        made = Buffer(f"g{next(self.memory.names)}", (elements_of(value),), value.dtype)
        self.views.made.append((made, buffer, begin))
        return made

    def result(self, value: Value) -> Buffer | None:
        """Returns the buffer that a result is to be written to; None for one in kept memory, which is asked for later."""
        return None if self.memory.fused.is_kept(value) else self.given(value)

    def kept_number(self, value: Value) -> int:
        """Returns the number of the kept memory of a result."""
        where = self.memory.plan.locations[value]
        assert where.place is Place.KEPT
        return where.number

    def branches(self) -> Stmt:
        """Returns both branches, of which one runs."""
        node = self.group.nodes[0]
        condition, *captures = [v for v in node.inputs if v is not None]
        ins = [self.given(v) for v in captures]
        results = [self.result(v) for v in node.outputs]
        names = [name for name, a in node.attributes if isinstance(a, Graph)]
        made = {
            name: self.branch(f, p, ins, results)
            for name, f, p in zip(names, self.group.regions, self.plans, strict=True)
        }
        return If(Load(self.given(condition), (ZERO,)), made["then"], made["other"])

    def branch(
        self, fused: FusedGraph, plan: MemoryPlan, ins: Sequence[Buffer], results: Sequence[Buffer | None]
    ) -> Stmt:
        """Returns one branch: results that are kept have their memory as soon as the branch knows their sizes."""
        outs = [self.out(fused, k, b) for k, b in enumerate(results)]
        ask = self.asking(outs)
        made = self.region(fused, plan, ins, outs, ask)
        for k, b in enumerate(results):
            if b is None and not fused.stage(*fused.graph.outputs[k].shape):
                made = ask(k, made)
        return made

    def out(self, fused: FusedGraph, k: int, result: Buffer | None, number: int | None = None) -> Buffer:
        """Returns the buffer of an output of a region: that of the result, or kept memory of the size that the region tells."""
        if result is not None:
            return result
        kept = number if number is not None else self.kept_number(self.group.outputs[k])
        return kept_buffer(f"made{next(self.memory.names)}", fused.graph.outputs[k], kept)

    @staticmethod
    def asking(buffers: Sequence[Buffer]) -> Ask:
        """Returns the function that wraps a body in the allocation of a region's input or output in kept memory."""

        def ask(number: int, body: Stmt) -> Stmt:
            return Alloc(buffers[number], body) if late_memory(buffers[number]) is not None else body

        return ask

    def loop(self) -> Stmt:
        """Returns a loop."""
        return _Loop(self).statement()


class _Loop:
    """The parts of a loop; *control* writes its node."""

    def __init__(self, control: _Control) -> None:
        self.c = control
        node = control.group.nodes[0]
        self.node = node
        self.fused, self.plan = control.group.regions[0], control.plans[0]
        self.states, self.scans = int(node.attribute("states")), int(node.attribute("scans"))
        self.most, self.condition = node.inputs[:2]
        given = [v for v in node.inputs[2:] if v is not None]
        self.initial, self.captures = given[: self.states], given[self.states :]
        self.counter = control.given(control.workspaces[1])
        self.going = control.given(control.workspaces[2])
        turning = alternating_states(control.memory.fused, control.group)
        self.pairs = {k: control.given(w) for k, w in zip(turning, control.workspaces[3:], strict=True)}
        self.single = {k: control.given(node.outputs[k]) for k in self.fused.updates}
        self.appends = appends_of(node)
        self.turn = Var("turn", INDEX)

    def statement(self) -> Stmt:
        """Returns the whole loop."""
        c, count = self.c, Load(self.counter, (ZERO,))
        start = [Store(self.counter, (ZERO,), ZERO, None), self.begun()]
        start += [self.started(k) for k in range(self.states)]
        goes: Expr = Load(self.going, (ZERO,))
        if self.most is not None:
            goes = goes & (count < Load(c.given(self.most), (ZERO,)))
        body = Let(self.turn, count, seq(self.iteration(), Store(self.counter, (ZERO,), self.turn + ONE, None)))
        trips = c.result(self.node.outputs[-1])
        assert trips is not None
        end = [self.finished(k) for k in self.pairs]
        end.append(Store(trips, (ZERO,), count, None))
        return seq(*start, While(goes, body), *end)

    def begun(self) -> Stmt:
        """Sets whether the loop begins."""
        first: Expr = TRUE if self.condition is None else Load(self.c.given(self.condition), (ZERO,))
        return Store(self.going, (ZERO,), first, None)

    def started(self, k: int) -> Stmt:
        """Copies the initial value of a state to where the first iteration reads it."""
        first = self.initial[k]
        source, elements = self.c.given(first), elements_of(first)
        if k in self.single:
            one = self.single[k]
            return seq() if one is source else copy(one, ZERO, source, ZERO, elements)
        if k in self.pairs:
            return copy(self.pairs[k], ZERO, source, ZERO, elements)
        grown = kept_buffer(f"first{k}", first, self.c.kept_number(self.node.outputs[k]))
        return Alloc(grown, copy(grown, ZERO, source, ZERO, elements))

    def finished(self, k: int) -> Stmt:
        """Copies the last value of a state to the result."""
        result, elements = self.c.result(self.node.outputs[k]), elements_of(self.node.outputs[k])
        assert result is not None
        last = Var("last", INDEX)
        moved = copy(result, ZERO, self.pairs[k], last * elements, elements)
        return Let(last, Load(self.counter, (ZERO,)) % 2, moved)

    def iteration(self) -> Stmt:
        """Returns the body of the loop, in which `turn` is the number of the iteration."""
        c, graph = self.c, self.fused.graph
        views: list[tuple[Buffer, Buffer, Expr]] = []

        def view(v: Value, source: Buffer, offset: Expr) -> Buffer:
            made = Buffer(f"s{next(c.memory.names)}", (elements_of(v),), v.dtype)
            views.append((made, source, offset))
            return made

        ins, outs, grown, rows = [self.counter], [self.going], list[Stmt](), list[Buffer]()
        now = self.turn % 2
        for k in range(self.states):
            taken, made = graph.inputs[1 + k], graph.outputs[1 + k]
            if k in self.single:
                ins.append(self.single[k])
                outs.append(self.single[k])
                continue
            if k in self.pairs:
                elements = elements_of(taken)
                ins.append(view(taken, self.pairs[k], now * elements))
                outs.append(view(made, self.pairs[k], (ONE - now) * elements))
                continue
            number = c.kept_number(self.node.outputs[k])
            ins.append(kept_buffer(f"before{next(c.memory.names)}", taken, number))
            outs.append(c.out(self.fused, 1 + k, None, c.memory.plan.kept[c.step, k]))
            grown.append(self.grown(k, number, outs[-1]))
        for k in range(self.scans):
            row, whole = graph.outputs[1 + self.states + k], self.node.outputs[self.states + k]
            elements = elements_of(row)
            target = c.result(whole)
            if target is None:
                target = self.rows(k, row)
                rows.append(target)
            outs.append(view(row, target, self.turn * elements))
        ins += [c.given(v) for v in self.captures]
        ask = c.asking(outs)
        body = c.region(self.fused, self.plan, ins, outs, ask, c.asking(ins), grown)
        for k in range(self.states):
            if k not in self.pairs and k not in self.single and not self.fused.stage(*graph.outputs[1 + k].shape):
                body = ask(1 + k, body)
        for buffer, source, offset in reversed(views):
            body = View(buffer, source, offset, body)
        for buffer in rows:
            body = Alloc(buffer, body)
        return body

    def grown(self, k: int, number: int, made: Buffer) -> Stmt:
        """Copies to kept memory of this *number* the state that an iteration has *made*, or the rows that it appends."""
        name, value = f"again{next(self.c.memory.names)}", self.fused.graph.outputs[1 + k]
        again = kept_buffer(name, value, number)
        if k not in self.appends:
            return Alloc(again, copy(again, ZERO, made, ZERO, again.shape[0]))
        a, begin, rows = self.appends[k], Var("begin", INDEX), again.shape[0]
        before: Expr = begin
        for d, size in enumerate(value.shape):
            before = before if d == a.axis else before * size
        again = Buffer(name, (before + rows,), again.dtype, again.scope)
        moved = Alloc(again, copy(again, before, made, ZERO, rows))
        return Let(begin, Load(self.pairs[a.size], (self.turn % 2,)), moved)

    def rows(self, k: int, row: Value) -> Buffer:
        """Returns the buffer of the rows so far, and the next one, of a scan whose length only the loop tells."""
        one = kept_buffer(f"rows{k}", row, self.c.kept_number(self.node.outputs[self.states + k]))
        return Buffer(one.name, (one.shape[0] * (self.turn + ONE),), one.dtype, one.scope)
