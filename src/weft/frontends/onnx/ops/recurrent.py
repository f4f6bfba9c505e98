"""Recurrent networks: RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.registry import translates
from weft.graph.builder import Builder
from weft.graph.composites.recurrent import Cell, Direction, Function, elman_cell, gru_cell, lstm_cell, recurrent_layer
from weft.graph.composites.sequences import element, equal_split

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
    0: (3, "its input"),
    1: (3, "the weights of its inputs"),
    2: (3, "the weights of its states"),
    3: (2, "its biases"),
    4: (1, "the lengths of its sequences"),
    5: (3, "its first state"),
    6: (3, "its first cell"),
    7: (2, "its peepholes"),
}
"""The dimensions that each input has."""


@translates("RNN")
def rnn(c: Call) -> Results:
    """A recurrent layer with one activation function."""
    return _layer(c, ["Tanh"], 1, elman_cell)


@translates("GRU")
def gru(c: Call) -> Results:
    """Gated recurrent units."""
    return _layer(c, ["Sigmoid", "Tanh"], 1, gru_cell(reset_after_product=c.flag("linear_before_reset", False)))


@translates("LSTM")
def lstm(c: Call) -> Results:
    """Long short-term memory."""
    return lstm_layer(c)


class Factors(NamedTuple):
    """The matrices of a direction, [features, gates * hidden] and [hidden, gates * hidden], and products by them if not plain."""

    inputs: Operand
    recurrence: Operand
    products: tuple[Function, Function] | None = None


def _transposed_factors(c: Call, n: int) -> Factors:
    inputs, recurrence = (c.transpose(element(c, c.input(i), 0, n), (1, 0)) for i in (1, 2))
    return Factors(inputs, recurrence)


def lstm_layer(c: Call, factors: Callable[[Call, int], Factors] = _transposed_factors) -> Results:
    """Imports a layer of long short-term memory, whose directions have *factors*."""
    cell = lstm_cell(coupled=c.flag("input_forget", False))
    return _layer(c, ["Sigmoid", "Tanh", "Tanh"], 2, cell, factors)


def _layer(
    c: Call,
    functions: Sequence[str],
    states: int,
    cell: Cell,
    factors: Callable[[Call, int], Factors] = _transposed_factors,
) -> Results:
    """Imports a layer of one direction or two; *states* says how many states a step of *cell* has."""
    batch_first = c.flag("layout", False)
    for i, (rank, what) in _RANKS.items():
        if c.has(i):
            c.ranked(i, rank, what)
    x = c.transpose(c.input(0), (1, 0, 2)) if batch_first else c.input(0)
    directions = _directions(c, x, functions, states, factors, batch_first=batch_first)
    y, ends = recurrent_layer(c, x, directions, cell, c.optional(4))
    if batch_first:
        y, ends = c.transpose(y, (2, 0, 1, 3)), [c.transpose(e, (1, 0, 2)) for e in ends]
    return y, *ends


def _directions(
    c: Call,
    x: Operand,
    functions: Sequence[str],
    states: int,
    factors: Callable[[Call, int], Factors],
    *,
    batch_first: bool,
) -> list[Direction]:
    names = {"forward": [True], "reverse": [False], "bidirectional": [True, False]}
    forward = names.get(c.text("direction", "forward"))
    if forward is None:
        c.fail(f"there is no direction {c.text('direction', '')!r}")
    chosen = _functions(c, c.attributes.get("activations") or list(functions) * len(forward))
    each = len(functions)
    made: list[Direction] = []
    for n, goes_forward in enumerate(forward):
        inputs, recurrence, products = factors(c, n)
        bias, peepholes = c.optional(3), c.optional(7)
        of_inputs, of_states = (None, None) if bias is None else equal_split(c, element(c, bias, 0, n), 2)
        made.append(
            Direction(
                goes_forward,
                inputs,
                recurrence,
                chosen[n * each : (n + 1) * each],
                tuple([_initial(c, 5 + k, n, x, recurrence, batch_first=batch_first) for k in range(states)]),
                of_inputs,
                of_states,
                () if peepholes is None or states != 2 else equal_split(c, element(c, peepholes, 0, n), 3),
                products=products,
            )
        )
    return made


def _initial(c: Call, i: int, n: int, x: Operand, recurrence: Operand, *, batch_first: bool) -> Operand:
    """Returns the first state of direction *n*: input *i*, or zeros."""
    given = c.optional(i)
    if given is None:
        return c.add("full", shape=(x.shape[1], recurrence.shape[0]), value=0, dtype=x.dtype)
    return element(c, c.transpose(given, (1, 0, 2)) if batch_first else given, 0, n)


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

    def apply(b: Builder, x: Operand) -> Operand:
        if limit:
            x = b.add("clip", x, b.scalar(-limit, x.dtype), b.scalar(limit, x.dtype))
        return b.add(op, x, **values)

    return apply
