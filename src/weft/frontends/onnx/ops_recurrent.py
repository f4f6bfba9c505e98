"""Recurrent networks: RNN, GRU and LSTM, one step after another.

The input's part of all steps is one matrix product; each step then adds the state's part. Sequences shorter than the longest keep
their last state, and give zeros after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.registry import translates
from weft.ir.expr import Const, Expr

Function: TypeAlias = Callable[[Operand], Operand]
States: TypeAlias = tuple[Operand, ...]

MOST_STEPS: Final = 1024
"""Steps up to which a sequence is written out."""

_DEFAULTS: Final[dict[str, tuple[str, dict[str, float]]]] = {
    "Relu": ("relu", {}),
    "Tanh": ("tanh", {}),
    "Sigmoid": ("sigmoid", {}),
    "Softsign": ("softsign", {}),
    "Softplus": ("softplus", {}),
    "LeakyRelu": ("leaky_relu", {"alpha": 0.01}),
    "ThresholdedRelu": ("thresholded_relu", {"alpha": 1.0}),
    "HardSigmoid": ("hard_sigmoid", {"alpha": 0.2, "beta": 0.5}),
    "Elu": ("elu", {"alpha": 1.0}),
}
"""Activation functions: Weft's operator, and the defaults of its attributes."""

_RANKS: Final = {
    0: (3, "its input"), 1: (3, "the weights of its inputs"), 2: (3, "the weights of its states"), 3: (2, "its biases"),
    4: (1, "the lengths of its sequences"), 5: (3, "its first state"), 6: (3, "its first cell"), 7: (2, "its peepholes"),
}  # fmt: skip
"""The dimensions that each input has."""


@dataclass
class Direction:
    """The weights of one direction and its activation functions."""

    forward: bool
    inputs: Operand  # W transposed: [features, gates * hidden]
    recurrence: Operand  # R transposed: [hidden, gates * hidden]
    biases: tuple[Operand, Operand] | None
    functions: list[Function]
    peepholes: list[Operand] = field(default_factory=list)


Cell: TypeAlias = Callable[[Call, Direction, Operand, States], States]
"""One step: from the input's part [batch, gates * hidden] and the states, the next states, the output first."""


@translates("RNN", limits=f"symbolic sequence lengths, and those above {MOST_STEPS}")
def rnn(c: Call) -> Results:
    """A recurrent layer with one activation function."""
    return _layer(c, ["Tanh"], 1, 1, _rnn_step)


@translates("GRU", limits=f"symbolic sequence lengths, and those above {MOST_STEPS}")
def gru(c: Call) -> Results:
    """Gated recurrent units (Cho et al., 2014)."""
    return _layer(c, ["Sigmoid", "Tanh"], 3, 1, _gru_step)


@translates("LSTM", limits=f"symbolic sequence lengths, and those above {MOST_STEPS}")
def lstm(c: Call) -> Results:
    """Long short-term memory (Hochreiter and Schmidhuber, 1997), with peepholes where they are given."""
    return _layer(c, ["Sigmoid", "Tanh", "Tanh"], 4, 2, _lstm_step)


def _rnn_step(c: Call, d: Direction, x: Operand, states: States) -> States:
    return (d.functions[0](c.add("add", x, _product(c, d, states[0]))),)


def _gru_step(c: Call, d: Direction, x: Operand, states: States) -> States:
    (h,) = states
    xz, xr, xh = _parts(c, x, 3)
    if c.flag("linear_before_reset", False):
        hz, hr, hh = _parts(c, _product(c, d, h), 3)
        r = d.functions[0](c.add("add", xr, hr))
        inner = c.add("mul", r, hh)
    else:
        rz, rr, rh = _parts(c, d.recurrence, 3)
        bz, br, bh = _parts(c, d.biases[1], 3) if d.biases else (None, None, None)
        hz, hr = _biased(c, c.add("matmul", h, rz), bz), _biased(c, c.add("matmul", h, rr), br)
        r = d.functions[0](c.add("add", xr, hr))
        inner = _biased(c, c.add("matmul", c.add("mul", r, h), rh), bh)
    z = d.functions[0](c.add("add", xz, hz))
    n = d.functions[1](c.add("add", xh, inner))
    kept = c.add("mul", z, h)
    return (c.add("add", c.add("mul", c.add("sub", c.scalar(1, z.dtype), z), n), kept),)


def _lstm_step(c: Call, d: Direction, x: Operand, states: States) -> States:
    h, cell = states
    i, o, f, g = _parts(c, c.add("add", x, _product(c, d, h)), 4)
    peep = d.peepholes
    i = d.functions[0](_looked(c, i, peep, 0, cell))
    f = d.functions[0](_looked(c, f, peep, 2, cell))
    if c.flag("input_forget", False):
        f = c.add("sub", c.scalar(1, i.dtype), i)
    cell = c.add("add", c.add("mul", f, cell), c.add("mul", i, d.functions[1](g)))
    o = d.functions[0](_looked(c, o, peep, 1, cell))
    return c.add("mul", o, d.functions[2](cell)), cell


def _looked(c: Call, gate: Operand, peepholes: list[Operand], k: int, cell: Operand) -> Operand:
    return c.add("add", gate, c.add("mul", peepholes[k], cell)) if peepholes else gate


def _biased(c: Call, x: Operand, bias: Operand | None) -> Operand:
    return x if bias is None else c.add("add", x, bias)


def _product(c: Call, d: Direction, h: Operand) -> Operand:
    made = c.add("matmul", h, d.recurrence)
    return _biased(c, made, d.biases[1] if d.biases else None)


def _parts(c: Call, x: Operand, count: int) -> tuple[Operand, ...]:
    """Returns equal pieces along the last dimension."""
    d = x.rank - 1
    return c.add_many("split", x, axis=d, sizes=tuple([x.shape[d] // count] * count))


def _layer(c: Call, functions: Sequence[str], gates: int, states: int, step: Cell) -> Results:
    """Imports a layer of one direction or two; *states* says how many states a step has."""
    batch_first = c.flag("layout", False)
    for i, (rank, what) in _RANKS.items():
        if c.has(i):
            c.ranked(i, rank, what)
    x = c.transpose(c.input(0), (1, 0, 2)) if batch_first else c.input(0)
    directions = _directions(c, functions, gates)
    lengths = c.optional(4)
    sequences: list[Operand] = []
    last: list[list[Operand]] = [[] for _ in range(states)]
    for n, d in enumerate(directions):
        begin = [_initial(c, 5 + k, n, x, d, batch_first) for k in range(states)]
        outputs, final = _run(c, d, x, tuple(begin), lengths, step)
        sequences.append(outputs)
        for k, end in enumerate(final):
            last[k].append(c.reshape(end, [1, *end.shape]))
    y = _joined(c, [c.reshape(s, [s.shape[0], 1, *s.shape[1:]]) for s in sequences], 1)
    ends = [_joined(c, states_, 0) for states_ in last]
    if batch_first:
        y, ends = c.transpose(y, (2, 0, 1, 3)), [c.transpose(e, (1, 0, 2)) for e in ends]
    return y, *ends


def _joined(c: Call, parts: Sequence[Operand], axis: int) -> Operand:
    return parts[0] if len(parts) == 1 else c.add("concat", *parts, axis=axis)


def _run(
    c: Call, d: Direction, x: Operand, states: States, lengths: Operand | None, step: Cell
) -> tuple[Operand, States]:
    """Returns the outputs of all steps [time, batch, hidden], and the states after the last."""
    turned = x if d.forward else _reversed(c, x, lengths)
    given = c.add("matmul", turned, d.inputs)
    given = _biased(c, given, d.biases[0] if d.biases else None)
    outputs: list[Operand] = []
    for t in range(_steps(c, x.shape[0])):
        new = step(c, d, _at(c, given, t), states)
        live = (
            None
            if lengths is None
            else c.add("less", c.scalar(t, lengths.dtype), c.reshape(lengths, [*lengths.shape, 1]))
        )
        out = new[0] if live is None else c.add("where", live, new[0], c.scalar(0, x.dtype))
        states = new if live is None else tuple(c.add("where", live, a, b) for a, b in zip(new, states, strict=True))
        outputs.append(c.reshape(out, [1, *out.shape]))
    y = _joined(c, outputs, 0)
    return (y if d.forward else _reversed(c, y, lengths)), states


def _steps(c: Call, size: Expr) -> int:
    if not isinstance(size, Const):
        c.fail("the length of its sequence is symbolic", 'give it a number: shapes={"x": (16, 1, 128)}')
    if not 0 < int(size.value) <= MOST_STEPS:
        c.fail(f"a sequence of {size.value} steps is not supported; {MOST_STEPS} is the longest")
    return int(size.value)


def _at(c: Call, x: Operand, t: int) -> Operand:
    piece = c.add("slice", x, starts=(t,), ends=(t + 1,), axes=(0,), steps=(1,))
    return c.reshape(piece, x.shape[1:])


def _reversed(c: Call, x: Operand, lengths: Operand | None) -> Operand:
    """Returns the sequences [time, batch, ...] from their ends to their beginnings."""
    if lengths is not None:
        return c.add("reverse_sequence", x, lengths, batch_axis=1, time_axis=0)
    return c.add("slice", x, starts=(-1,), ends=(-(2**62),), axes=(0,), steps=(-1,))


def _initial(c: Call, i: int, n: int, x: Operand, d: Direction, batch_first: bool) -> Operand:
    """Returns the first state of direction *n*: input *i*, or zeros."""
    given = c.optional(i)
    if given is None:
        return c.add("full", shape=(x.shape[1], d.recurrence.shape[0]), value=0, dtype=x.dtype)
    return _at(c, c.transpose(given, (1, 0, 2)) if batch_first else given, n)


def _directions(c: Call, functions: Sequence[str], gates: int) -> list[Direction]:
    names = {"forward": [True], "reverse": [False], "bidirectional": [True, False]}
    forward = names.get(c.text("direction", "forward"))
    if forward is None:
        c.fail(f"there is no direction {c.text('direction', '')!r}")
    chosen = c.attributes.get("activations") or list(functions) * len(forward)
    made = _functions(c, chosen)
    each = len(functions)
    bias, peepholes = c.optional(3), c.optional(7)
    return [
        Direction(
            f,
            c.transpose(_at(c, c.input(1), n), (1, 0)),
            c.transpose(_at(c, c.input(2), n), (1, 0)),
            None if bias is None else _pair(_parts(c, _at(c, bias, n), 2)),
            made[n * each : (n + 1) * each],
            [] if peepholes is None or gates != 4 else list(_parts(c, _at(c, peepholes, n), 3)),
        )
        for n, f in enumerate(forward)
    ]


def _pair(parts: Sequence[Operand]) -> tuple[Operand, Operand]:
    return parts[0], parts[1]


def _functions(c: Call, names: Sequence[str]) -> list[Function]:
    """Returns the activation functions; their parameters are taken in order by those that have any."""
    given = {
        "alpha": list(c.attributes.get("activation_alpha", [])),
        "beta": list(c.attributes.get("activation_beta", [])),
    }
    return [_function(c, name, given) for name in names]


def _function(c: Call, name: str, given: dict[str, list[float]]) -> Function:
    title = next((k for k in _DEFAULTS if k.lower() == name.lower()), None)
    if title is None:
        c.fail(f"the activation function {name} is not supported", f"use one of {', '.join(_DEFAULTS)}")
    op, defaults = _DEFAULTS[title]
    values = {k: float(given[k].pop(0)) if given[k] else v for k, v in defaults.items()}
    limit = c.number("clip", 0.0)

    def apply(x: Operand) -> Operand:
        if limit:
            x = c.add("clip", x, c.scalar(-limit, x.dtype), c.scalar(limit, x.dtype))
        return c.add(op, x, **values)

    return apply
