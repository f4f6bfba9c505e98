"""Steps of optimizers: new parameters, and new states, from gradients (ONNX's domain `ai.onnx.preview.training`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.support.dtypes import f64, i64

DOMAIN: Final = "ai.onnx.preview.training"

Step = Callable[[Operand, Operand, Sequence[Operand]], Sequence[Operand]]
"""One optimizer's step: takes the learning rate, the number of steps before, and a parameter, its gradient and states."""


def _each(c: Call, states: int, step: Step) -> Results:
    """Applies *step* to every parameter: inputs and outputs list all parameters, then all of each of their *states*."""
    kinds = 2 + states
    given = [c.input(i) for i in range(2, len(c.inputs))]
    count = len(given) // kinds
    if count * kinds != len(given):
        c.fail(f"it has {len(given)} tensors behind R and T, which is no multiple of {kinds}", UNFIT)
    rate, steps = (c.reshape(c.input(i), ()) for i in (0, 1))
    made = [step(rate, steps, given[k::count]) for k in range(count)]
    return tuple([new[n] for n in range(1 + states) for new in made])


def _scaled(c: Call, x: Operand, factor: float) -> Operand:
    return c.add("mul", x, c.scalar(factor, x.dtype))


def _regularized(c: Call, x: Operand, gradient: Operand) -> Operand:
    """Returns the gradient with that of the squared norm of *x*, times `norm_coefficient`."""
    weight = c.number("norm_coefficient", 0.0)
    return gradient if weight == 0 else c.add("add", _scaled(c, x, weight), gradient)


def _mixed(c: Call, old: Operand, new: Operand, share: float) -> Operand:
    """Returns a moving average: *share* of the old value, the rest of the new one."""
    return c.add("add", _scaled(c, old, share), _scaled(c, new, 1 - share))


def _root(c: Call, squares: Operand, default: float) -> Operand:
    """Returns the root of accumulated squares, and `epsilon` more."""
    return c.add("add", c.add("sqrt", squares), c.scalar(c.number("epsilon", default), squares.dtype))


@translates("Adagrad", domain=DOMAIN)
def adagrad(c: Call) -> Results:
    """Rates that fall with the squares of all gradients so far (Duchi, Hazan and Singer, 2011)."""

    def step(rate: Operand, steps: Operand, of: Sequence[Operand]) -> Sequence[Operand]:
        x, gradient, squares = of
        g = _regularized(c, x, gradient)
        later = _scaled(c, c.cast(steps, rate.dtype), c.number("decay_factor", 0.0))
        falling = c.add("div", rate, c.add("add", later, c.scalar(1, rate.dtype)))
        total = c.add("add", squares, c.add("mul", g, g))
        change = c.add("div", c.add("mul", c.cast(falling, x.dtype), g), _root(c, total, 1e-6))
        return c.add("sub", x, change), total

    return _each(c, 1, step)


@translates("Adam", domain=DOMAIN)
def adam(c: Call) -> Results:
    """Averages of gradients over the roots of averages of their squares (Kingma and Ba, 2015), corrected for their start."""
    alpha, beta = c.number("alpha", 0.9), c.number("beta", 0.999)
    shrink = 1 - c.number("norm_coefficient_post", 0.0)

    def rest(share: float, steps: Operand) -> Operand:
        """Returns `1 - share ** steps`, the weight of all gradients so far in an average: a small difference at first."""
        power = c.add("power", c.scalar(share, f64), c.cast(steps, f64))
        return c.add("sub", c.scalar(1, f64), power)

    def step(rate: Operand, steps: Operand, of: Sequence[Operand]) -> Sequence[Operand]:
        x, gradient, average, squares = of
        g = _regularized(c, x, gradient)
        first, second = _mixed(c, average, g, alpha), _mixed(c, squares, c.add("mul", g, g), beta)
        weight = c.cast(c.add("div", c.add("sqrt", rest(beta, steps)), rest(alpha, steps)), rate.dtype)
        later = c.add("less", c.scalar(0, i64), steps)
        used = c.add("where", later, c.add("mul", rate, weight), rate)
        change = c.add("mul", c.cast(used, x.dtype), c.add("div", first, _root(c, second, 1e-6)))
        return _scaled(c, c.add("sub", x, change), shrink), first, second

    return _each(c, 2, step)


@translates("Momentum", domain=DOMAIN)
def momentum(c: Call) -> Results:
    """Gradient descent with momentum (Polyak, 1964), or with Nesterov's by `mode`."""
    mode = c.text("mode", "standard")
    if mode not in ("standard", "nesterov"):
        c.fail(f"its attribute 'mode' is {mode!r}", "use 'standard' or 'nesterov'")
    alpha, beta = c.number("alpha", 0.0), c.number("beta", 0.0)

    def step(rate: Operand, steps: Operand, of: Sequence[Operand]) -> Sequence[Operand]:
        x, gradient, velocity = of
        g = _regularized(c, x, gradient)
        later = c.add("less", c.scalar(0, i64), steps)
        weight = c.add("where", later, c.scalar(beta, g.dtype), c.scalar(1, g.dtype))
        moved = c.add("add", _scaled(c, velocity, alpha), c.add("mul", weight, g))
        used = moved if mode == "standard" else c.add("add", g, _scaled(c, moved, alpha))
        return c.add("sub", x, c.add("mul", c.cast(rate, x.dtype), used)), moved

    return _each(c, 1, step)
