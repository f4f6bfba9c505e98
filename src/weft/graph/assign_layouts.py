"""Which nodes compute on channels in blocks: the choice that `choose_layouts` carries out, as one problem over the whole graph.

Each value has up to four alternatives: it is computed plain or in blocks, and kept so alone, or moved to the other layout too. A
node that computes its value in blocks reads its inputs in blocks. A convolution fills vectors with channels in blocks, and in the
plain layout with elements of a row, where it can read those; the model's own inputs and outputs are plain. `pbqp` solves it.
"""

from __future__ import annotations

from math import inf, prod

from weft.graph.facts import is_plain_map
from weft.graph.graph import Constant, Graph, Node, Value
from weft.graph.layout import FINITE_AT_ZERO, group_blocks, input_block, is_pointwise, output_block
from weft.graph.pbqp import Edge, solve
from weft.graph.winograd_plans import direct_part, good_plans, layer_of, winograd_cycles
from weft.ir.expr import Const, as_expr
from weft.support.dtypes import f32
from weft.targets.target import Target

CONVOLUTIONS = frozenset({"conv2d", "conv_transpose2d"})
POOLS = frozenset({"max_pool2d", "avg_pool2d"})
REDUCTIONS = frozenset({"reduce_mean", "reduce_max", "reduce_min", "reduce_sum"})

PLAIN_CONVOLUTION = 4.0
"""The time of a plain convolution as a multiple of one in blocks: it reads along rows, whose ends fill no vector."""

IN_ROWS = 1.05
"""The same of one that reads rows in vectors (measured, as are the next two)."""

REST = 0.5
"""To what power the part that a row fills of its vectors tells its time where masks are free: its rest has shorter vectors."""

WIDEST = 512
"""Bits of the vectors that some cores compute in two halves."""

ONE_BLOCK = 1.5
"""How many times as long a convolution takes that reads an element for each product, on a core that reads no more than two."""

SHORT_STRIDE = 2
"""The longest stride at which every so many elements of a row are picked from vectors as fast as channels are packed."""

MOVING_CYCLES = 8.0
"""Cycles for each vector that is packed or unpacked: its part of a transposition in registers, loads, and stores (measured)."""

DEPTHWISE = 1.25
"""How many times as long the products of a depthwise convolution take in blocks as their arithmetic (measured)."""

TAKEN = 1.0
"""Cycles for each vector that windows take from a row, again for each of their places in it (measured, as is the next)."""

PICKED = 5.0
"""The same where every other element is picked from two vectors."""

UNFINISHED = 0.05
"""What a plain node costs, as a part of moving what it computes: in blocks it may finish a convolution, in registers."""


_PLAIN, _BOTH, _BLOCKED, _BLOCKED_TOO = range(4)
"""The alternatives: plain, plain and packed, in blocks, in blocks and unpacked."""

_IN_BLOCKS = (_BLOCKED, _BLOCKED_TOO)


def nodes_in_blocks(graph: Graph, target: Target, *, by_winograd: bool = True) -> set[Node]:
    """Returns the nodes to compute in channel blocks; sizes that are not known count as one.

    Convolutions in blocks may be those *by_winograd*, where that takes less.
    """
    problem = _Problem(graph, target, by_winograd)
    chosen = solve(problem.costs, problem.edges)
    return {
        v.producer for v, k in zip(problem.values, chosen, strict=True) if k in _IN_BLOCKS and v.producer is not None
    }


class _Problem:
    """The alternatives of each value, and what they cost in cycles."""

    def __init__(self, graph: Graph, target: Target, by_winograd: bool) -> None:
        self.target = target
        self.by_winograd = by_winograd
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

    def _costs(self, v: Value) -> list[float]:
        """Returns the cycles of each alternative of *v*, its computation included."""
        n, moving = v.producer, self._moving(v)
        if n is None or not _has_blocked_form(n):
            return [0.0, moving, inf, inf]
        plain, blocked = self._plain(n), self._blocked(n)
        return [plain, plain + moving, blocked, blocked + moving]

    def _use(self, v: Value, user: Node) -> None:
        """Lets *v* be there in the layout that *user* reads it in."""
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
        return MOVING_CYCLES * _elements(v) / self.target.lanes(v.dtype.bits)

    def _takes_plain(self, user: Node, v: Value) -> bool:
        """Tells whether the blocked form of *user* reads the channels of *v* one by one, in any layout."""
        return user.op in CONVOLUTIONS and input_block(_channels(v), self.target.lanes(v.dtype.bits)) == 1

    def _plain(self, n: Node) -> float:
        least, lanes = UNFINISHED * self._moving(n.output), self.target.lanes(n.output.dtype.bits)
        if n.op not in CONVOLUTIONS:
            return least
        if is_pointwise(n):
            places = prod(map(_size, n.output.shape[2:]))
            return least + self._work(n) / (_filled(places, lanes) if places > 1 else 1.0)
        width, masks = _size(n.output.shape[3]), self.target.mask_registers
        if _is_depthwise(n) and n.attribute("strides")[-1] <= SHORT_STRIDE and (masks or _fills_a_vector(n, lanes)):
            return least + self._windows(n) / (self._filled_rows(width, lanes) if masks else 1.0)
        if _reads_rows(n):
            return least + self._work(n) * IN_ROWS / self._filled_rows(width, lanes)
        apart = n.attribute("strides")[-1] > 1 and n.op == "conv2d"  # elements are read one by one, and put together
        in_rows = PLAIN_CONVOLUTION / (_filled(width, lanes) if 1 < width < lanes else 1.0)
        return least + self._work(n) * (2 * lanes if apart else in_rows)

    def _blocked(self, n: Node) -> float:
        """Returns the cycles of the form in blocks, infinite where there is none."""
        lanes = self.target.lanes(n.output.dtype.bits)
        if n.op not in CONVOLUTIONS:
            filled = _channels(n.output) % output_block(_channels(n.output), lanes) == 0
            return 0.0 if filled or n.op in FINITE_AT_ZERO else inf
        x, group = n.inputs[0], n.attribute("group")
        assert x is not None  # a convolution has an input
        read, made = _channels(x), _channels(n.output)
        if _is_depthwise(n):
            return self._work(n) * DEPTHWISE / _filled(made, output_block(made, lanes))
        if group > 1:
            blocks = group_blocks(read // group, made // group, lanes, rows=set(n.attribute("strides")) == {1})
            return inf if blocks is None else self._work(n) / _filled(made // group, blocks[1])
        if n.op != "conv2d":
            return self._work(n)
        bound = made <= lanes and self.target.mask_registers and self.target.fma_per_cycle > 1
        used = _filled(read, input_block(read, lanes)) * _filled(made, lanes)
        direct = self._work(n) / used * (ONE_BLOCK if bound else 1.0)
        return min(direct, self._winograd(n)) if self.by_winograd else direct

    def _winograd(self, n: Node) -> float:
        """Returns the cycles of a convolution of one group by Winograd's method, infinite where that is not better."""
        x, w, made = n.inputs[0], n.inputs[1], n.output.sample_shape
        image = None if x is None else x.sample_shape
        if (
            not isinstance(w, Constant)
            or made is None
            or image is None
            or n.output.dtype is not f32
            or set(n.attribute("dilations")) != {1}
        ):
            return inf
        lanes = self.target.lanes(n.output.dtype.bits)
        blocks = input_block(w.extents[1], lanes), output_block(w.extents[0], lanes)
        direct = direct_part(n, image[2:], made[2:], w.extents[2:])
        layer = layer_of((made[0], made[2], made[3]), w.extents, n.attribute("strides"), *blocks, direct)
        plans = [] if layer is None else good_plans(layer, self.target)
        return inf if layer is None or not plans else winograd_cycles(layer, plans[0], self.target)

    def _filled_rows(self, width: int, lanes: int) -> float:
        """Returns the part of their time that rows of *width* need as many vectors as they take."""
        if width > lanes:
            return float(_filled(width, lanes) ** (REST if self.target.mask_registers else 1.0))
        halves = self.target.vector_bits == WIDEST and self.target.fma_per_cycle == 1  # a wide vector takes both units
        return _filled(width, lanes // 2 if halves else lanes)

    def _windows(self, n: Node) -> float:
        """Returns the cycles of a depthwise convolution on vectors along rows."""
        w = n.inputs[1]
        assert w is not None  # a convolution has a weight
        rows, along = map(_size, w.shape[2:])
        taken = PICKED if self.target.mask_registers and n.attribute("strides")[-1] > 1 else TAKEN
        return self._work(n) * (1 + taken / rows + TAKEN / (rows * along))

    def _work(self, n: Node) -> float:
        """Returns the cycles of a convolution's multiplications on one core."""
        x, w = n.inputs[0], n.inputs[1]
        assert x is not None  # a convolution has an input
        assert w is not None  # and a weight
        transposed = n.op == "conv_transpose2d"
        products = _elements(x if transposed else n.output) * _elements(w) / _size(w.shape[0])
        return products / self.target.lanes(n.output.dtype.bits) / max(1, self.target.fma_per_cycle)


def _reads_rows(n: Node) -> bool:
    """Tells whether a plain convolution of several channels reads vectors along rows: at stride one, of a known width."""
    at_one = n.op == "conv2d" and n.attribute("strides")[-1] == 1
    return at_one and not _is_depthwise(n) and isinstance(n.output.shape[-1], Const)


def _fills_a_vector(n: Node, lanes: int) -> bool:
    """Tells whether the rows of a node's output are as long as a vector; those of an unknown width are taken to be."""
    width = n.output.shape[-1]
    return not isinstance(width, Const) or _size(width) >= lanes


def _is_depthwise(n: Node) -> bool:
    """Tells whether each channel is convolved alone."""
    x = n.inputs[0]
    return n.op == "conv2d" and x is not None and x.shape[1] is as_expr(n.attribute("group")) is n.output.shape[1]


def _filled(size: int, lanes: int) -> float:
    """Returns the part of the lanes that *size* elements fill of as many vectors as they take."""
    return size / (-(-size // lanes) * lanes)


def _has_blocked_form(n: Node) -> bool:
    """Tells whether there may be a form of *n* on channels in blocks."""
    x = n.inputs[0] if n.inputs else None
    if len(n.outputs) != 1 or x is None:
        return False
    if n.op in REDUCTIONS:
        axes = n.attribute("axes")
        return x.rank == 4 and isinstance(x.shape[1], Const) and axes is not None and {a % 4 for a in axes} <= {2, 3}
    if n.output.rank != 4 or not isinstance(n.output.shape[1], Const):
        return False
    if n.op in CONVOLUTIONS:
        return isinstance(n.inputs[1], Constant) and isinstance(x.shape[1], Const)
    return n.op in POOLS or (n.op == "concat" and n.attribute("axis") % 4 == 1) or is_plain_map(n)


def _channels(v: Value) -> int:
    return _size(v.shape[1]) if v.rank > 1 else 1


def _elements(v: Value) -> int:
    return prod(map(_size, v.shape))


def _size(e: object) -> int:
    return int(e.value) if isinstance(e, Const) else 1
