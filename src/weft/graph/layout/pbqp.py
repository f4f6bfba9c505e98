"""Partitioned boolean quadratic problems: one alternative for each node of a graph, so that the sum of all costs is least.

Solved by reduction: a node with one neighbour is folded into that neighbour, one with two into an edge between them, both
exactly; where no such node is left, the node with the most neighbours takes the alternative that is cheapest with its
neighbours' best answers (Scholz and Eckstein, "Register allocation for irregular architectures", LCTES 2002; for layouts and
algorithms of neural networks: Anderson and Gregg, "Optimal DNN primitive selection with partitioned boolean quadratic
programming", CGO 2018). Trees and series-parallel graphs, as most networks are, come out optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Costs = npt.NDArray[np.float64]
Edge = tuple[int, int]


Pick = Callable[[int, Costs], int]
"""Chooses an alternative of a node by the cost of each, given the choices that are still open."""


def pick_cheapest(node: int, costs: Costs) -> int:
    """Returns the cheapest alternative, of equals the first."""
    return int(np.argmin(costs))


def solve(
    nodes: Sequence[Sequence[float]],
    edges: Mapping[Edge, Sequence[Sequence[float]]],
    pick: Pick = pick_cheapest,
) -> list[int]:
    """Returns the alternative chosen for each node, as *pick* takes them one after another.

    *nodes* has the cost of each alternative, infinite for one that is not allowed; *edges* that of each pair of alternatives of
    its two nodes, the first node's down. Ties go to the alternative named first.
    """
    return _Reduction(nodes, edges, pick).solve()


class _Reduction:
    """The nodes that are left, and for each removed node the choice that it makes once its neighbours have chosen."""

    def __init__(
        self, nodes: Sequence[Sequence[float]], edges: Mapping[Edge, Sequence[Sequence[float]]], pick: Pick
    ) -> None:
        self.pick = pick
        self.chosen = [0] * len(nodes)
        self.costs: list[Costs] = [np.array(c, float) for c in nodes]
        self.matrices: list[dict[int, Costs]] = [{} for _ in nodes]
        for (a, b), m in edges.items():
            if a == b:
                self.costs[a] += np.diagonal(np.array(m, float))
            else:
                self._join(a, b, np.array(m, float))
        self.decisions: list[tuple[int, Callable[[list[int]], Costs]]] = []

    def solve(self) -> list[int]:
        """Removes node after node, then chooses in reverse order."""
        left = set(range(len(self.costs)))
        ready = sorted(left, key=self._degree, reverse=True)
        while left:
            while ready and (ready[-1] not in left or self._degree(ready[-1]) > 2):
                ready.pop()
            n = ready.pop() if ready else max(left, key=lambda k: (self._degree(k), -k))
            around = list(self.matrices[n])
            self._remove(n, around)
            left.discard(n)
            ready += [k for k in around if self._degree(k) <= 2]
        for n, costs_given in reversed(self.decisions):
            self.chosen[n] = self.pick(n, costs_given(self.chosen))
        return self.chosen

    def _degree(self, n: int) -> int:
        return len(self.matrices[n])

    def _join(self, a: int, b: int, m: Costs) -> None:
        """Adds the costs *m* between two nodes."""
        self.matrices[a][b] = self.matrices[a][b] + m if b in self.matrices[a] else m
        self.matrices[b][a] = self.matrices[a][b].T

    def _remove(self, n: int, around: Sequence[int]) -> None:
        """Removes a node, adding its costs to those of its neighbours."""
        own, matrices = self.costs[n], {k: self.matrices[n].pop(k) for k in around}
        for k in around:
            del self.matrices[k][n]
        if len(around) > 2:
            chosen = self.pick(n, own + sum((m + self.costs[k]).min(axis=1) for k, m in matrices.items()))
            self.chosen[n] = chosen
            for k, m in matrices.items():
                self.costs[k] = self.costs[k] + m[chosen]
            return
        self.decisions.append((n, lambda chosen: own + sum(m[:, chosen[k]] for k, m in matrices.items())))
        if len(around) == 1:
            [(k, m)] = matrices.items()
            self.costs[k] = self.costs[k] + (own[:, None] + m).min(axis=0)
        elif len(around) == 2:
            (a, ma), (b, mb) = matrices.items()
            self._join(a, b, (own[:, None, None] + ma[:, :, None] + mb[:, None, :]).min(axis=0))
