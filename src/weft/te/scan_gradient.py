"""The gradient of a recurrence: backwards through time.

Once all steps of the states are known, a step is a formula like any other, computed for all steps at once: its *unrolled* form
reads the states, delayed, as inputs. Only the flow of adjoints from a step to those before it is sequential:

    adjoint of the update at step t  =  given adjoint of the result at t  +  contributions of the steps that look back at t

That is a scan again, with time running backwards. Its states are the adjoints of the delayed states. When they are known, the
adjoints of the tensors that a step reads from outside are sums over all steps at once: for a layer's weights, one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from weft.ir import TRUE, ZERO, Expr, Node, Var, cast, const, index, map_nodes, select, simplify, substitute
from weft.support.errors import GradientError
from weft.te.adjoints import Adjoint, Contribution, formulas, map_body, wide
from weft.te.backward import Key, backward, formula_rule, key_of, reading
from weft.te.derivatives import plus
from weft.te.scan import Scan, scan
from weft.te.tensor import Compute, Read, Tensor, compute, placeholder, topological

Lag: TypeAlias = tuple[int, int]
"""The number of a state, and how many steps back it is read."""


def scan_contributions(
    op: Scan, heads: Sequence[Adjoint | None], wanted: Callable[[Tensor], bool]
) -> Iterator[Contribution]:
    """Yields the terms that a recurrence with results of adjoints *heads* adds to the adjoints of the *wanted* tensors."""
    step = _Unrolled(op)
    flow = _Flow(step, heads)
    outside = [t for t in op.inputs if t.dtype.is_float and wanted(t)]
    found = backward(flow.heads(), outside, formula_rule, through=False, constants=list(step.delayed.values()))
    for t, made in zip(outside, found, strict=True):
        if made is not None:
            yield _everywhere(t, reading(made))
    for k, s in enumerate(op.states):
        adjoint = flow.initial(k) if s.init.dtype.is_float and wanted(s.init) else None
        if adjoint is not None:
            yield _everywhere(s.init, adjoint)


def _everywhere(t: Tensor, adjoint: Adjoint) -> Contribution:
    """Returns the contribution of *adjoint* to all of *t*."""
    axes = [Var(f"i{d}") for d in range(t.rank)]
    value = cast(adjoint(axes), wide(t.dtype))
    return Contribution(t, tuple(axes), value, dict(zip(axes, t.shape, strict=True)), TRUE)


class _Unrolled:
    """The formulas of a step for all computed steps at once, counted from 0; they read the states' results, *delayed*."""

    def __init__(self, op: Scan) -> None:
        self.scan = op
        self.delayed: dict[Lag, Tensor] = {}
        self.of: dict[Key, Tensor] = {}
        self.number = {key_of(s.placeholder): k for k, s in enumerate(op.states)}
        for part in op.step:
            for t, made in zip(part.outputs, self._unrolled(part), strict=True):
                self.of[key_of(t)] = made

    def update(self, k: int) -> Tensor:
        """Returns the update of a state, at all steps."""
        return self.of[key_of(self.scan.states[k].update)]

    def shape(self, k: int) -> tuple[Expr, ...]:
        """Returns the shape of the update of a state at all steps."""
        return (self.scan.count, *self.scan.shape_of(k)[1:])

    def _unrolled(self, part: Compute) -> tuple[Tensor, ...]:
        step = Var(part.axes[0].name)

        def change(n: Node) -> Node | None:
            if not isinstance(n, Read):
                return None
            key, where = key_of(n.tensor), (step, *n.indices[1:])
            if key in self.number:
                return self._delayed(self.number[key], self.scan.lag(part, n) or 0)[where]
            return self.of[key][where] if key in self.of else None

        time = {part.axes[0]: step + index(self.scan.first)}
        body = map_body(part.body, lambda e: substitute(map_nodes(e, change), time))
        return formulas((self.scan.count, *part.shape[1:]), (step, *part.axes[1:]), body, part.name)

    def _delayed(self, k: int, lag: int) -> Tensor:
        """Returns a state as the steps see it that look *lag* steps back."""
        made = self.delayed.get((k, lag))
        if made is None:
            result, back = self.scan.outputs[k], index(self.scan.first - lag)
            made = compute(self.shape(k), lambda t, *i: result[(t + back, *i)], result.name, dtype=result.dtype)
            self.delayed[k, lag] = made
        return made


class _Flow:
    """The flow of adjoints back through time: *passed* has each step's contributions to the states that it looks back at."""

    def __init__(self, step: _Unrolled, heads: Sequence[Adjoint | None]) -> None:
        self.step = step
        self.given = heads
        self.first, self.count = step.scan.first, step.scan.count
        self.longest = max([lag for _, lag in step.delayed], default=1)
        self.passed: dict[Lag, Tensor] = {}
        numbers = range(len(heads))
        unknown = {k: placeholder(step.shape(k), step.scan.dtypes[k], f"d_{step.update(k).name}") for k in numbers}
        recurrent = {k for k, _ in self._one_step(unknown)}
        unknown = {k: t for k, t in unknown.items() if k in recurrent}
        self.passed = self._through_time(unknown, self._one_step(unknown))

    def heads(self) -> list[tuple[Tensor, Adjoint]]:
        """Returns the updates with their adjoints, at all steps."""
        made = [(self.step.update(k), self._total(k)) for k in range(len(self.given))]
        return [(t, reading(head)) for t, head in made if head is not None]

    def initial(self, k: int) -> Adjoint | None:
        """Returns the adjoint of the initial steps of a state."""
        if self.given[k] is None and not self._lags(k):
            return None

        def adjoint(where: Sequence[Expr]) -> Expr:
            head = self.given[k]
            total = None if head is None else head(where)
            for lag in self._lags(k):
                step = where[0] + index(lag - self.first)
                passed = self._passed(k, lag, step, where[1:])
                total = plus(total, select(step >= ZERO, passed, const(0, passed.dtype)))
            assert total is not None
            return total

        return adjoint

    def _lags(self, k: int) -> list[int]:
        return [lag for number, lag in self.passed if number == k]

    def _passed(self, k: int, lag: int, step: Expr, inner: Sequence[Expr]) -> Expr:
        """Returns the contribution of *step* to the state that it reads *lag* steps back; zero if it comes after the last."""
        return self.passed[k, lag][(self._turned(step), *inner)]

    def _turned(self, step: Expr) -> Expr:
        """Returns the number of a step when time runs backwards, after the initial steps; its own inverse."""
        return self.count + index(self.longest - 1) - step

    def _total(self, k: int) -> Tensor | None:
        """Returns the adjoint of an update at all steps, once the steps' contributions are known; None if it is zero."""
        head, lags = self.given[k], self._lags(k)
        if head is None and not lags:
            return None

        def fn(t: Expr, *i: Expr) -> Expr:
            total = None if head is None else head((t + index(self.first), *i))
            for lag in lags:
                total = plus(total, self._passed(k, lag, t + index(lag), i))
            assert total is not None
            return total

        return compute(self.step.shape(k), fn, f"d_{self.step.update(k).name}")

    def _one_step(self, unknown: Mapping[int, Tensor]) -> dict[Lag, Tensor]:
        """Returns the contributions of steps in terms of their updates' adjoints, the *unknown* ones as placeholders."""
        heads: list[tuple[Tensor, Adjoint]] = []
        for k in range(len(self.given)):
            head = unknown.get(k) or self._total(k)
            if head is not None:
                heads.append((self.step.update(k), reading(head)))
        delayed = {lag: t for lag, t in self.step.delayed.items() if t.dtype.is_float}
        found = backward(heads, list(delayed.values()), formula_rule, through=False)
        return {lag: made for lag, made in zip(delayed, found, strict=True) if made is not None}

    def _through_time(self, unknown: Mapping[int, Tensor], passed: Mapping[Lag, Tensor]) -> dict[Lag, Tensor]:
        """Returns the contributions of steps, by a scan in which time runs backwards."""
        if not passed:
            return {}
        steps = simplify(self.count + index(self.longest))
        states = {lag: placeholder((steps, *t.shape[1:]), t.dtype, t.name) for lag, t in passed.items()}
        turned = _Turned(steps, self._turned)
        for k, t in unknown.items():
            turned.of[key_of(t)] = self._adjoint_in_time(k, steps, {n: s for (j, n), s in states.items() if j == k})
        updates = [turned.tensor(t) for t in passed.values()]
        inits = [_zeros((index(self.longest), *t.shape[1:]), t) for t in passed.values()]
        return dict(zip(passed, scan(inits, updates, list(states.values())), strict=True))

    def _adjoint_in_time(self, k: int, steps: Expr, states: Mapping[int, Tensor]) -> Tensor:
        """Returns the adjoint of an update when time runs backwards."""
        head = self.given[k]

        def fn(t: Expr, *i: Expr) -> Expr:
            total = None if head is None else head((self._turned(t) + index(self.first), *i))
            for lag, s in states.items():
                total = plus(total, s[(t - index(lag), *i)])
            assert total is not None
            return total

        return compute((steps, *self.step.shape(k)[1:]), fn, f"d_{self.step.update(k).name}")


def _zeros(shape: Sequence[Expr], like: Tensor) -> Tensor:
    def fn(*i: Expr) -> Expr:
        return const(0, like.dtype)

    return compute(shape, fn, f"{like.name}_start")


class _Turned:
    """Formulas with time as their first axis, rewritten for time running backwards; *of* caches those that are made already."""

    def __init__(self, steps: Expr, turn: Callable[[Expr], Expr]) -> None:
        self.steps = steps
        self.turn = turn
        self.of: dict[Key, Tensor] = {}

    def tensor(self, t: Tensor) -> Tensor:
        """Returns *t* reversed in time, with the tensors that it reads and that depend on the reversed ones."""
        for op in topological([t]):
            if isinstance(op, Compute) and key_of(op.outputs[0]) not in self.of:
                if any(key_of(x) in self.of for x in op.inputs):
                    self.of.update(zip([key_of(x) for x in op.outputs], self._made(op), strict=True))
        return self.of[key_of(t)]

    def _made(self, op: Compute) -> tuple[Tensor, ...]:
        time = Var(op.axes[0].name)

        def change(n: Node) -> Node | None:
            if not isinstance(n, Read) or key_of(n.tensor) not in self.of:
                return None
            if n.indices[0] is not op.axes[0]:
                raise GradientError(f"{op.name} needs the adjoint of {n.tensor.name} at another step")
            return self.of[key_of(n.tensor)][(time, *n.indices[1:])]

        turned = {op.axes[0]: self.turn(time)}
        body = map_body(op.body, lambda e: substitute(map_nodes(e, change), turned))
        return formulas((self.steps, *op.shape[1:]), (time, *op.axes[1:]), body, op.name)
