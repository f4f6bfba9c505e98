"""Chooses the nodes that compute in the blocked layout (NCHWc), as one problem over the whole graph; `choose_layouts` applies it.

Each value has up to four alternatives: it is computed plain (NCHW) or blocked, and either kept in that layout alone or copied to
the other one too. A node that computes its value blocked reads its inputs blocked. A blocked convolution vectorizes over
channels, a plain one over elements of a row, where it can load these as vectors; the model's own inputs and outputs are plain.
`cost.layout` estimates the cycles of each alternative, unless the planner knows their costs; `pbqp` solves the problem.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf, isfinite, prod
from typing import TypeAlias

from weft.cost import (
    Candidate,
    Choose,
    Convolution,
    CostSource,
    Form,
    Layout,
    Planner,
    Question,
    blocked_cycles,
    by_cost,
    depthwise_cycles,
    dot_product_cycles,
    group_blocks,
    grouped_cycles,
    input_block,
    multiply_cycles,
    output_block,
    packing_cycles,
    plain_cycles,
    subject_of,
    unfused_cycles,
)
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.fusion.node_facts import is_plain_map
from weft.graph.layout.channel_blocks import fills_up, has_places, is_pointwise
from weft.graph.layout.pbqp import Costs, Edge, pick_cheapest, solve
from weft.graph.layout.winograd_plans import Channels, best_by_winograd, layer_of
from weft.ir import Const, as_expr
from weft.support.dtypes import f32, i32
from weft.targets import Target

_PLAIN, _BOTH, _BLOCKED, _BLOCKED_TOO = range(4)
"""The alternatives: plain, plain and packed, blocked, blocked and unpacked."""

_IN_BLOCKS = (_BLOCKED, _BLOCKED_TOO)


def nodes_in_blocks(graph: Graph, planner: Planner, *, by_winograd: bool = True) -> set[Node]:
    """Returns the nodes to compute in channel blocks; sizes that are not known count as one.

    Convolutions in blocks may be those *by_winograd*, where that takes less. *planner* decides node by node, each time by the
    cost that the layouts of all other nodes then have at best; any nodes may be computed in blocks.
    """
    asked = [n for n in graph.nodes if _has_blocked_form(n)]
    subjects = [subject_of(n.output.name) for n in asked]

    def solve_jointly(machine: Target, choose: Choose, costs: CostSource) -> list[Question]:
        answers = _Problem(graph, machine, costs, by_winograd=by_winograd).answers(asked, choose)
        return [Question(s, *answers[n]) for s, n in zip(subjects, asked, strict=True)]

    decided = planner.decide_jointly(subjects, Layout, solve_jointly)
    return {n for n, layout in zip(asked, decided, strict=True) if layout.blocks}


_Answer: TypeAlias = "tuple[tuple[Candidate[Layout], ...], Candidate[Layout]]"
"""The candidates for a node, and the one that was taken."""


class _Problem:
    """The alternatives of each value, and their costs: in cycles, or in the unit of *known* costs."""

    def __init__(self, graph: Graph, target: Target, known: CostSource, *, by_winograd: bool) -> None:
        self.target = target
        self.by_winograd = by_winograd
        self.known = known
        made = [v for n in graph.nodes for v in n.outputs]
        self.values = [v for v in (*graph.inputs, *made) if v.rank > 1]
        self.numbers = {v: k for k, v in enumerate(self.values)}
        self.costs = [self._costs(v) for v in self.values]
        self.edges: dict[Edge, list[list[float]]] = {}
        for n in graph.nodes:
            for v in dict.fromkeys(n.inputs):
                if v in self.numbers:
                    self._use(v, n)
        for v in graph.outputs:
            if v in self.numbers:
                self.costs[self.numbers[v]][_BLOCKED] = inf

    def answers(self, asked: Collection[Node], choose: Choose) -> dict[Node, _Answer]:
        """Returns a layout for each node of *asked*: *choose* takes one of the candidates, priced given the nodes before it."""
        found: dict[Node, _Answer] = {}
        open_nodes = set(asked)

        def pick(k: int, costs: Costs) -> int:
            node = self.values[k].producer
            if node not in open_nodes:
                return pick_cheapest(k, costs)
            kinds = {Layout(blocks=False): costs[:_BLOCKED], Layout(blocks=True): costs[_BLOCKED:]}
            every = by_cost([Candidate(layout, float(c.min())) for layout, c in kinds.items()])
            candidates = tuple([c for c in every if isfinite(c.cycles)]) or (every[0],)
            chosen = choose(candidates)
            found[node] = candidates, chosen
            return pick_cheapest(k, kinds[chosen.decision]) + (_BLOCKED if chosen.decision.blocks else 0)

        solve(self.costs, self.edges, pick)
        return found

    def _costs(self, v: Value) -> list[float]:
        """Returns the cost of each alternative of *v*, its computation included."""
        subject, n = subject_of(v.name), v.producer
        moving = self.known.moving(subject, self._moving(v))
        if n is None or not _has_blocked_form(n):
            return [0.0, moving, inf, inf]
        plain = self.known.cycles(subject, Layout(blocks=False), self._plain(n))
        blocked = self.known.cycles(subject, Layout(blocks=True), self._blocked(n))
        return [plain, plain + moving, blocked, blocked + moving]

    def _use(self, v: Value, user: Node) -> None:
        """Adds the cost of *v* in the layout in which *user* reads it."""
        made, used = self.numbers[v], self.numbers.get(user.output) if len(user.outputs) == 1 else None
        if used is None or self.costs[used][_BLOCKED] == inf:
            self.costs[made][_BLOCKED] = inf
        elif not self._takes_plain(user, v):
            matrix = [[0.0] * 4 for _ in range(4)]
            for k in _IN_BLOCKS:
                matrix[_PLAIN][k] = inf
            for k in (_PLAIN, _BOTH):
                matrix[_BLOCKED][k] = inf
            self.edges[made, used] = matrix

    def _moving(self, v: Value) -> float:
        if self.target.lanes(v.dtype.bits) == 1:  # blocks of one channel lie as the plain layout does
            return 0.0
        return packing_cycles(_elements(v), v.dtype.bits, self.target)

    def _takes_plain(self, user: Node, v: Value) -> bool:
        """Tells whether the blocked form of *user* reads single channels of *v*, so that either layout serves."""
        return user.operator.is_convolution and input_block(_channels(v), self.target.lanes(v.dtype.bits)) == 1

    def _plain(self, n: Node) -> float:
        least = unfused_cycles(_elements(n.output), n.output.dtype.bits, self.target)
        return least if not n.operator.is_convolution else least + plain_cycles(_convolution(n), self.target)

    def _blocked(self, n: Node) -> float:
        """Returns the cycles of the blocked form of a node, infinite where there is none.

        Threads of a grid have no vectors for blocks to fill, and neighbours of them read neighbouring places.
        """
        if self.target.has_threads:
            return inf
        if n.operator.is_convolution:
            return self._packing(n.inputs[1]) + self._convolution(n)
        channels = _channels(n.output)
        filled = channels % output_block(channels, self.target.lanes(n.output.dtype.bits)) == 0
        return 0.0 if filled or fills_up(n) else inf

    def _packing(self, w: Value | None) -> float:
        """Returns the cycles in which a call packs a weight: none for a constant, which is packed when compiling."""
        return 0.0 if w is None or isinstance(w, Constant) else packing_cycles(_elements(w), w.dtype.bits, self.target)

    def _convolution(self, n: Node) -> float:
        """Returns the cycles of a convolution in blocks, infinite where there is no such form."""
        direct = _direct_in_blocks(n, self.target)
        return min(direct, self._winograd(n)) if self.by_winograd and _is_dense(n) else direct

    def _winograd(self, n: Node) -> float:
        """Returns the cycles of a convolution of one group by Winograd's method, infinite where direct is as good.

        Those of packing the weight for a direct one are left out.
        """
        w = n.inputs[1]
        weight = None if w is None else w.static_shape
        if weight is None or n.output.dtype is not f32:
            return inf
        lanes = self.target.lanes(n.output.dtype.bits)
        blocks = input_block(weight[1], lanes), output_block(weight[0], lanes)
        layer = layer_of(n, Channels(weight, *blocks, changing=not isinstance(w, Constant)))
        return inf if layer is None else best_by_winograd(layer, self.target) - self._packing(w)


def _direct_in_blocks(n: Node, target: Target) -> float:
    """Returns the cycles of a convolution in blocks without Winograd's method, infinite where there is no such form."""
    x, lanes = n.inputs[0], target.lanes(n.output.dtype.bits)
    assert x is not None  # a convolution has an input
    read, made, c = _channels(x), _channels(n.output), _convolution(n)
    if n.output.dtype is i32:
        return dot_product_cycles(c, made, target)
    group = n.attribute("group")
    if _is_depthwise(n):
        return depthwise_cycles(c, made, output_block(made, lanes), target)
    if group > 1:
        blocks = group_blocks(read // group, made // group, lanes, rows=set(n.attribute("strides")) == {1})
        return inf if blocks is None else grouped_cycles(c, made // group, blocks[1], target)
    if n.op != "conv2d":
        return multiply_cycles(c.products, c.bits, target)
    return blocked_cycles(c, (read, input_block(read, lanes)), made, target)


def _is_dense(n: Node) -> bool:
    """Tells whether *n* is an ordinary convolution of floats in one group."""
    return n.op == "conv2d" and n.output.dtype is not i32 and n.attribute("group") == 1


def _convolution(n: Node) -> Convolution:
    """Returns the sizes of a convolution as the cost model takes them."""
    x, w, places = n.inputs[0], n.inputs[1], n.output.shape[2:]
    assert x is not None  # a convolution has an input
    assert w is not None  # and a weight
    read = x if n.op == "conv_transpose2d" else n.output
    *rows, along = map(_size, w.shape[2:])
    return Convolution(
        form=_form(n),
        products=_elements(read) * _elements(w) / _size(w.shape[0]),
        bits=n.output.dtype.bits,
        places=prod(map(_size, places)),
        width=_size(places[-1]),
        window=(prod(rows), along),
        stride=n.attribute("strides")[-1],
        open_width=not isinstance(places[-1], Const),
    )


def _form(n: Node) -> Form:
    """Returns how a convolution in the plain layout reads its input."""
    if is_pointwise(n):
        return Form.POINTWISE
    if _is_depthwise(n):
        return Form.DEPTHWISE
    if n.op != "conv2d":
        return Form.OTHER
    if n.attribute("strides")[-1] > 1:
        return Form.STRIDED
    return Form.ROWS if isinstance(n.output.shape[-1], Const) else Form.OTHER


def _is_depthwise(n: Node) -> bool:
    """Tells whether each channel is convolved alone."""
    x = n.inputs[0]
    return n.op == "conv2d" and x is not None and x.shape[1] is as_expr(n.attribute("group")) is n.output.shape[1]


def works_along_places(n: Node) -> bool:
    """Tells whether *n* works along a dimension of the places of images, at each channel alone."""
    return n.operator.along == "axis" and has_places(n.output) and n.attribute("axis") % n.output.rank > 1


def pads_places(n: Node) -> bool:
    """Tells whether *n* pads images around their places alone: neither samples nor channels are added."""
    if n.op != "pad" or not has_places(n.output):
        return False
    pads, rank = n.attribute("pads"), n.output.rank
    return not any((*pads[:2], *pads[rank : rank + 2]))


def _has_blocked_form(n: Node) -> bool:
    """Tells whether *n* may have a blocked form."""
    x = n.inputs[0] if n.inputs else None
    if len(n.outputs) != 1 or x is None:
        return False
    if n.operator.along == "axes":
        return _reduces_positions(n, x)
    if not has_places(n.output) or not isinstance(n.output.shape[1], Const):
        return False
    if n.operator.is_convolution:
        return _has_blocks(n) and is_packable(n) and isinstance(x.shape[1], Const)
    return (
        n.operator.per_channel
        or works_along_places(n)
        or pads_places(n)
        or (n.op == "concat" and n.attribute("axis") % n.output.rank == 1)
        or is_plain_map(n)
    )


def _has_blocks(n: Node) -> bool:
    """Tells whether there is an operator on blocks for the convolution *n*: of any kind over images, of floats over volumes."""
    return n.output.rank == len("NCHW") or n.op == "conv2d"


def is_packable(n: Node) -> bool:
    """Tells whether the weight of a convolution may be packed: floats in each call, or a constant once."""
    w = n.inputs[1]
    return isinstance(w, Constant) or (w is not None and w.static_shape is not None and w.dtype.is_float)


def _reduces_positions(n: Node, x: Value) -> bool:
    """Tells whether a reduction of *x* is over spatial dimensions alone, not over channels."""
    axes = n.attribute("axes")
    if axes is None or not has_places(x):
        return False
    return isinstance(x.shape[1], Const) and min([a % x.rank for a in axes], default=0) > 1


def _channels(v: Value) -> int:
    return _size(v.shape[1]) if v.rank > 1 else 1


def _elements(v: Value) -> int:
    return prod(map(_size, v.shape))


def _size(e: object) -> int:
    return int(e.value) if isinstance(e, Const) else 1
