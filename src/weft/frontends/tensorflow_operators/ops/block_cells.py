"""Steps of recurrent layers as one operator, and whole sequences of them."""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontends.tensorflow_operators.call import Call, Results
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Builder, Operand
from weft.graph.composites.branches_and_loops import loop
from weft.graph.composites.sequences import concat, element, equal_split, few_steps, stack
from weft.support.dtypes import bool_, i64

_LSTM = ("i", "cs", "f", "o", "ci", "co", "h")


class _LstmCell:
    """A cell of long short-term memory (Hochreiter and Schmidhuber, 1997), by the inputs of its node from number *at* on."""

    def __init__(self, c: Call, at: int) -> None:
        self.weight = c.tensor(at, 2)
        self.bias = c.tensor(at + 4, 1)
        self.peepholes = [c.tensor(at + k, 1) for k in (1, 2, 3)] if c.flag("use_peephole") else None
        is_second = c.op == "BlockLSTMV2"
        self.order = (0, 2, 1, 3) if is_second else (0, 1, 2, 3)
        """Where the gates input, candidate, forget and output are in the product."""
        self.forget_bias = 0.0 if is_second else c.number("forget_bias", 1.0)
        self.clip = c.number("cell_clip", 0.0 if is_second else 3.0)

    def step(self, b: Builder, x: Operand, memory: Operand, h: Operand) -> dict[str, Operand]:
        """Returns the results of a step of *x* [batch, inputs] by their names."""
        dtype = x.dtype
        product = b.add("add", b.add("matmul", concat(b, [x, h], 1), self.weight), self.bias)
        pieces = equal_split(b, product, 4)
        i, ci, f, o = (pieces[k] for k in self.order)
        if self.forget_bias:
            f = b.add("add", f, b.scalar(self.forget_bias, dtype))
        i = b.add("sigmoid", self._seen(b, i, 0, memory))
        f = b.add("sigmoid", self._seen(b, f, 1, memory))
        ci = b.add("tanh", ci)
        cs = b.add("add", b.add("mul", ci, i), b.add("mul", memory, f))
        if self.clip > 0:
            cs = b.add("clip", cs, b.scalar(-self.clip, dtype), b.scalar(self.clip, dtype))
        o = b.add("sigmoid", self._seen(b, o, 2, cs))
        co = b.add("tanh", cs)
        return {"i": i, "cs": cs, "f": f, "o": o, "ci": ci, "co": co, "h": b.add("mul", co, o)}

    def _seen(self, b: Builder, gate: Operand, k: int, memory: Operand) -> Operand:
        """Returns a gate that sees the memory, through a peephole (Gers and Schmidhuber, 2000)."""
        return gate if self.peepholes is None else b.add("add", gate, b.add("mul", memory, self.peepholes[k]))


@translates("LSTMBlockCell", outputs=_LSTM)
def lstm_block_cell(c: Call) -> Results:
    """A step of long short-term memory: its gates, its memory, and its output."""
    made = _LstmCell(c, 3).step(c, c.tensor(0, 2), c.tensor(1, 2), c.tensor(2, 2))
    return tuple(made.values())


@translates("BlockLSTM", "BlockLSTMV2", outputs=_LSTM)
def block_lstm(c: Call) -> Results:
    """The results of all steps of a sequence [time, batch, inputs]; zeros behind the first so many, which count."""
    x, cell = c.tensor(1, 3), _LstmCell(c, 4)
    most = c.reshape(c.cast(c.tensor(0), i64), [])
    first = [c.tensor(2, 2), c.tensor(3, 2)]

    def step(b: Builder, t: Operand, now: Operand, states: Sequence[Operand]) -> list[Operand]:
        made = cell.step(b, now, states[0], states[1])
        live = b.add("less", t, most)
        return [b.add("where", live, v, b.scalar(0, v.dtype)) for v in made.values()]

    steps = few_steps(x.shape[0])
    if steps:
        rows: list[list[Operand]] = []
        states = first
        for t in range(steps):
            rows.append(step(c, c.scalar(t, i64), element(c, x, 0, t), states))
            states = [rows[-1][1], rows[-1][6]]
        return tuple([stack(c, [row[k] for row in rows], 0) for k in range(len(_LSTM))])

    def iteration(
        r: Builder, t: Operand, states: Sequence[Operand]
    ) -> tuple[Operand, Sequence[Operand], Sequence[Operand]]:
        made = step(r, t, r.add("element_at", x, t, axis=0), states)
        return r.scalar(True, bool_), [made[1], made[6]], made

    _, scans = loop(c, c.size(x.shape[0]), None, first, iteration)
    return tuple(scans)


@translates("GRUBlockCell", outputs=("r", "u", "c", "h"))
def gru_block_cell(c: Call) -> Results:
    """A step of gated recurrent units (Cho et al., 2014): the gates reset and update, the candidate, and the output."""
    x, h = c.tensor(0, 2), c.tensor(1, 2)
    gates = c.add("add", c.add("matmul", concat(c, [x, h], 1), c.tensor(2, 2)), c.tensor(4, 1))
    r, u = equal_split(c, c.add("sigmoid", gates), 2)
    inner = c.add("matmul", concat(c, [x, c.add("mul", r, h)], 1), c.tensor(3, 2))
    new = c.add("tanh", c.add("add", inner, c.tensor(5, 1)))
    rest = c.add("mul", c.add("sub", c.scalar(1, u.dtype), u), new)
    return r, u, new, c.add("add", c.add("mul", u, h), rest)
