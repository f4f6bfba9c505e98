"""Recurrences: `scan` computes tensors step by step along time, each step from those before it.

    X = placeholder((T, n), f32, "X")
    first = compute((1, n), lambda t, i: X[0, i], "first")
    s = placeholder((T, n), f32, "s")                          # stands for the steps that are known
    (sums,) = scan([first], [compute((T, n), lambda t, i: s[t - 1, i] + X[t, i], "sum")], [s])

A *state* is a tensor whose first dimension is time. Its *initial* steps are given, as many as a step looks back; each later
step is the *update* formula at that time. Between the states and the updates there may be other formulas, with time as their
first dimension, too: they belong to the step. Tensors that do not depend on a state are computed before the scan, once.

After TVM's `te.scan` (Chen et al., "TVM", OSDI 2018, section 4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from weft.ir import Const, Expr, index, simplify
from weft.support.dtypes import DType
from weft.support.errors import TypeMismatch
from weft.te.tensor import Compute, Operation, Placeholder, Read, Tensor, topological


@dataclass(frozen=True, eq=False)
class State:
    """One recurrent tensor: its first steps, the formula of the later ones, and the placeholder for it in formulas."""

    init: Tensor
    update: Tensor
    placeholder: Tensor


class Scan(Operation):
    """Tensors given by a recurrence; output number k has all steps of state number k.

    `step` are the operations of one step in order, `first` the number of initial steps.
    """

    def __init__(self, states: Sequence[State]) -> None:
        self.states = tuple(states)
        self.name = states[0].placeholder.name
        self.shape = states[0].placeholder.shape
        _check_states(self.states)
        self.first = _initial_steps(self.states)
        self.step = _step_of(self.states)
        for op in self.step:
            self._check_step(op)

    @property
    def count(self) -> Expr:
        """The number of steps that are computed, without the initial ones."""
        return simplify(self.shape[0] - index(self.first))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The initial steps, and the tensors from outside that the formulas of a step read."""
        inside: set[Operation] = {*self.step, *[s.placeholder.op for s in self.states]}
        read = [t for op in self.step for t in op.inputs if t.op not in inside]
        return tuple(dict.fromkeys([*[s.init for s in self.states], *read]))

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The type of each state."""
        return tuple([s.placeholder.dtype for s in self.states])

    def shape_of(self, index: int) -> tuple[Expr, ...]:
        """Returns the shape of a state."""
        return self.states[index].placeholder.shape

    def name_of(self, index: int) -> str:
        """Returns the name of a state's placeholder."""
        return self.states[index].placeholder.name

    def is_state(self, t: Tensor) -> bool:
        """Tells whether *t* stands for a state in formulas."""
        return any(t is s.placeholder for s in self.states)

    def lag(self, op: Compute, read: Read) -> int | None:
        """Returns how many steps back *op*, of a step, reads a state; None if that is not constant."""
        found = simplify(op.axes[0] - read.indices[0])
        return int(found.value) if isinstance(found, Const) else None

    def _check_step(self, op: Compute) -> None:
        """Refuses a formula of the step that does not run over time, or reads a step that is not known yet."""
        if not _is_same(op.shape[:1], self.shape[:1]):
            _refuse(f"{op.name} depends on a state, so its first dimension must be time")
        for read in op.reads:
            name = read.tensor.name
            if read.tensor.op in self.step and read.indices[0] is not op.axes[0]:
                _refuse(f"{op.name} reads {name} of another step", "make it a state, and read that")
            if self.is_state(read.tensor) and self.lag(op, read) not in range(1, self.first + 1):
                wanted = "1 step" if self.first == 1 else f"1 to {self.first} steps"
                _refuse(f"{op.name} reads the state {name} at a step that may not be known", f"look {wanted} back")


def scan(init: Sequence[Tensor], update: Sequence[Tensor], state: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Defines the tensors of a recurrence; returns all steps of each state, called as its placeholder.

    *init* has the first steps of each state, *update* its formula over all of time, and *state* the placeholder that formulas
    read at earlier times. Raises `TypeMismatch` where these do not fit one another.
    """
    if not state or not len(init) == len(update) == len(state):
        _refuse("a scan takes an initial value, an update and a placeholder for each state, and has one state or more")
    return Scan([State(*s) for s in zip(init, update, state, strict=True)]).outputs


def _refuse(message: str, hint: str | None = None) -> NoReturn:
    raise TypeMismatch(message, hint=hint)


def _check_states(states: Sequence[State]) -> None:
    """Refuses states whose parts are invalid, or do not fit one another."""
    for role, tensors in (("placeholder", [s.placeholder for s in states]), ("update", [s.update for s in states])):
        if len(set(tensors)) != len(tensors):
            _refuse(f"two states of a scan have the same {role}")
    for s in states:
        name = s.placeholder.name
        if not isinstance(s.placeholder.op, Placeholder) or not s.placeholder.shape:
            _refuse(f"the state {name} is not a placeholder with time as its first dimension")
        if not isinstance(s.update.op, Compute):
            _refuse(f"the update of {name} is not a compute()")
        if any(t.dtype is not s.placeholder.dtype for t in (s.init, s.update)):
            _refuse(f"the state {name} is {s.placeholder.dtype}, starts as {s.init.dtype} and becomes {s.update.dtype}")
        if not _is_same(s.update.shape, s.placeholder.shape):
            _refuse(f"the update of {name} has another shape than its placeholder")
        if not _is_same(s.init.shape[1:], s.placeholder.shape[1:]):
            _refuse(f"the initial steps of {name} have another shape than the others")
        if not _is_same(s.placeholder.shape[:1], states[0].placeholder.shape[:1]):
            _refuse(f"{name} has another number of steps than {states[0].placeholder.name}")


def _is_same(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
    return [simplify(x) for x in a] == [simplify(x) for x in b]


def _initial_steps(states: Sequence[State]) -> int:
    """Returns how many steps are given at the start, the same for all states."""
    counts = [simplify(s.init.shape[0]) for s in states]
    first = counts[0]
    if not isinstance(first, Const) or first.value < 1 or any(c is not first for c in counts):
        _refuse("all states of a scan start with the same constant number of steps, one or more")
    return int(first.value)


def _step_of(states: Sequence[State]) -> tuple[Compute, ...]:
    """Returns the operations that depend on a state, and the updates, each after those it reads."""
    known: set[Operation] = {s.placeholder.op for s in states}
    updates = {s.update.op for s in states}
    found: list[Compute] = []
    for op in topological([s.update for s in states]):
        if op not in updates and not any(t.op in known for t in op.inputs):
            continue
        if not isinstance(op, Compute):
            _refuse(f"{op.name} depends on a state of the scan, but is not a compute()")
        known.add(op)
        found.append(op)
    return tuple(found)
