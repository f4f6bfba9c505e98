"""Orders the groups so that the peak of live memory is least.

    a = f(x); b = g(y); c = h(a, b); where g needs much memory while it runs and f little     becomes     b = g(y); a = f(x); c =
    h(a, b)

The search goes over the sets of groups that may have run (the set determines the live values), by beam search: exact where the
beam holds all sets, as for the few branches of common networks. Ahn et al., "Ordering chaos: memory-aware scheduling of
irregularly wired neural networks" (MLSys 2020), search the same space.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.cost import ORDER_BEAMS, ORDER_STEPS
from weft.graph.core.graph_values import Value
from weft.graph.fusion.groups import FusedGraph, Group
from weft.graph.memory.buffer_size import buffer_size
from weft.graph.memory.in_place import can_take_over, outside
from weft.ir import ONE


def order_groups(fused: FusedGraph) -> FusedGraph:
    """Returns *fused* with its groups in an order of smaller peak; *fused* itself if none is found, or if sizes are symbolic."""
    costs = _Costs(fused)
    if not costs.are_known:
        return fused
    before = costs.peak(range(len(fused.groups)))
    if before == costs.bound():
        return fused
    order = next((found for width in ORDER_BEAMS if (found := _search(costs, width))), None)
    if order is None or costs.peak(order) >= before:
        return fused
    return FusedGraph(fused.graph, tuple([fused.groups[k] for k in order]), fused.aliases)


@dataclass(frozen=True)
class _State:
    """The groups that have run, as a bit set: the bytes live after them, the peak so far, their order, and the ready groups."""

    done: int
    live: int
    peak: int
    order: tuple[int, ...]
    ready: tuple[int, ...]


class _Costs:
    """The values that each group reads, writes and frees, as bit sets."""

    def __init__(self, fused: FusedGraph) -> None:
        self.fused = fused
        fixed = outside(fused)
        self.reads = [tuple(dict.fromkeys(map(fused.root, g.inputs))) for g in fused.groups]
        self.writes = [tuple(dict.fromkeys(map(fused.root, g.outputs))) for g in fused.groups]
        self.writers = _by_value(self.writes)
        self.users = {v: bits | self.writers.get(v, 0) for v, bits in _by_value(self.reads).items()}
        sizes = {v: buffer_size(v) for v in self.writers if v not in fixed}
        self.are_known = all(factor is ONE for _, factor in sizes.values()) and not fused.graph.late_sizes
        self.size = {v: size for v, (size, _) in sizes.items()}
        self.needs = [self._needed(k) for k in range(len(fused.groups))]
        self.takes = [self._taken(g) for g in fused.groups]
        self.followers = [[j for j, needed in enumerate(self.needs) if needed >> k & 1] for k in range(len(self.needs))]
        self.start = _State(0, 0, 0, (), tuple([k for k, needed in enumerate(self.needs) if not needed]))

    def _needed(self, k: int) -> int:
        """Returns the earlier groups that write the values that group *k* reads."""
        needed = 0
        for v in self.reads[k]:
            needed |= self.writers.get(v, 0) & ((1 << k) - 1)
        return needed

    def _taken(self, group: Group) -> tuple[Value, ...]:
        """Returns the values whose memory the output of a group may reuse, if they die there."""
        if len(group.outputs) != 1 or group.outputs[0] in self.fused.aliases or group.outputs[0] not in self.size:
            return ()
        roots = [self.fused.root(v) for v in group.inputs]
        return tuple(
            r
            for v, r in zip(group.inputs, roots, strict=True)
            if r in self.size and roots.count(r) == 1 and can_take_over(self.fused, group, v)
        )

    def bound(self) -> int:
        """Returns a lower bound of the peak of any order: the most bytes that one group reads and writes."""
        return max((self._alone(k) for k in range(len(self.needs))), default=0)

    def _alone(self, k: int) -> int:
        total = sum(self.size.get(v, 0) for v in {*self.reads[k], *self.writes[k]})
        return total - max((self.size[v] for v in self.takes[k]), default=0)

    def after(self, s: _State, k: int) -> _State:
        """Returns the state after group *k* has run too."""
        done = s.done | 1 << k
        new = sum(self.size.get(v, 0) for v in self.writes[k] if not self.writers[v] & s.done)
        dead = [v for v in {*self.reads[k], *self.writes[k]} if v in self.size and not self._users(v) & ~done]
        if any(v in dead for v in self.takes[k]):
            peak = s.live
        else:
            peak = s.live + new
        live = s.live + new - sum(self.size[v] for v in dead)
        freed = [j for j in self.followers[k] if not self.needs[j] & ~done]
        ready = (*[j for j in s.ready if j != k], *freed)
        return _State(done, live, max(s.peak, peak), (*s.order, k), ready)

    def _users(self, v: Value) -> int:
        return self.users.get(v, self.writers[v])

    def peak(self, order: range | tuple[int, ...]) -> int:
        """Returns the most bytes live at once in an order."""
        s = self.start
        for k in order:
            s = self.after(s, k)
        return s.peak


def _by_value(lists: list[tuple[Value, ...]]) -> dict[Value, int]:
    found: dict[Value, int] = {}
    for k, values in enumerate(lists):
        for v in values:
            found[v] = found.get(v, 0) | 1 << k
    return found


def _search(costs: _Costs, width: int) -> tuple[int, ...] | None:
    """Returns the order of the smallest peak that a beam of *width* states finds; None where the search would take too long."""
    beam = [costs.start]
    tried = 0
    for _ in costs.needs:
        found: dict[int, _State] = {}
        tried += sum(len(s.ready) for s in beam)
        if tried > ORDER_STEPS:
            return None
        for s in beam:
            for k in s.ready:
                made = costs.after(s, k)
                known = found.get(made.done)
                if known is None or _rank(made) < _rank(known):
                    found[made.done] = made
        beam = sorted(found.values(), key=_rank)[:width]
    return beam[0].order


def _rank(s: _State) -> tuple[int, int, tuple[int, ...]]:
    return s.peak, s.live, s.order
