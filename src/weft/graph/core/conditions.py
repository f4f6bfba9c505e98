"""Conditions of a graph beside its nodes: requirements that calls check, and data-dependent sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from weft.graph.core.graph_values import Value
from weft.ir import Expr, Var


@dataclass(frozen=True)
class Requirement:
    """A condition that the symbolic sizes of a call must satisfy; *message* may name the *values* as {0}, {1} ..."""

    condition: Expr
    message: str
    values: tuple[Expr, ...]


@dataclass(frozen=True)
class Guard:
    """A run-time check of computed values: *least* and *greatest* must be inside *limits* (element by element).

    `what` is the noun for such a value in the message, and `source` the model's node that needs the check. A guard is `watched`
    if the kernels that use the values report one outside: only then are *least* and *greatest* computed.
    """

    least: Value
    greatest: Value
    limits: tuple[tuple[Expr, Expr], ...]
    what: str
    source: str
    watched: bool = False

    def mapped(self, stands_for: Mapping[Value, Value]) -> Guard:
        """Returns the same check on replaced values."""
        least, greatest = stands_for.get(self.least, self.least), stands_for.get(self.greatest, self.greatest)
        return replace(self, least=least, greatest=greatest)


@dataclass(frozen=True)
class LateSize:
    """A size that is known only when a model runs: *size* is element *element* of *value*, a tensor of integers.

    Nodes behind the one that makes *value* use it as any other size, but that it may be zero, unless the variable has limits that
    say otherwise: empty tensors are not computed. A call ends with a message of the model's node *source*, and of *what* the
    size is, where it is less than its `least`.
    """

    size: Var
    value: Value
    element: int
    what: str
    source: str

    @property
    def least(self) -> int:
        """The least size that it may be: 0 unless the variable's limits say otherwise."""
        return 0 if self.size.limits is None else self.size.limits[0]

    def mapped(self, stands_for: Mapping[Value, Value]) -> LateSize:
        """Returns the same size, read from a replaced value."""
        found = stands_for.get(self.value, self.value)
        return self if found is self.value else replace(self, value=found)
