"""The tables of an ensemble of decision trees, as the operator `tree_ensemble` takes them, from those of ONNX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from weft.frontends.onnx.call import Call, Operand
from weft.frontends.onnx.model_node import DAMAGED
from weft.graph.builder import CompileTimeConstant, static_sizes
from weft.ops import ACCEPTS_EQUAL, ACCEPTS_GREATER, ACCEPTS_LESS, ACCEPTS_NAN

ACCEPTED: Final = {
    "LEQ": ACCEPTS_LESS | ACCEPTS_EQUAL,
    "LT": ACCEPTS_LESS,
    "GTE": ACCEPTS_GREATER | ACCEPTS_EQUAL,
    "GT": ACCEPTS_GREATER,
    "EQ": ACCEPTS_EQUAL,
    "NEQ": ACCEPTS_LESS | ACCEPTS_GREATER,
}
"""The outcomes that pass the test of a mode."""


@dataclass(frozen=True)
class Test:
    """A node: the test of a feature, and where it leads to; the numbers of nodes, or those of leaves as -1 - leaf."""

    feature: int
    mode: str
    split: float
    accepts_nan: bool
    passed: int
    failed: int


@dataclass
class Forest:
    """Nodes, the roots of trees, and for each leaf its targets and weights."""

    tests: list[Test] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    leaves: list[list[tuple[int, float]]] = field(default_factory=list)

    def evaluated(self, c: Call, x: Operand, count: int, reduce: str) -> Operand:
        """Returns the reduced weights [N, count] of the rows of *x*; raises `ModelError` for tables that are no trees."""
        self._check(c, x, count)
        nodes = [(t.feature, ACCEPTED[t.mode] | ACCEPTS_NAN * t.accepts_nan, t.passed, t.failed) for t in self.tests]
        begins = np.cumsum([0, *map(len, self.leaves)])
        entries = [e for leaf in self.leaves for e in leaf]
        tables = [
            np.asarray([t.split for t in self.tests] or [0.0]).astype(x.dtype.numpy),
            np.asarray(nodes or [(0, 0, -1, -1)], np.int32),
            np.asarray(self.roots, np.int32),
            begins.astype(np.int32),
            np.asarray([e[0] for e in entries] or [0], np.int32),
            np.asarray([e[1] for e in entries] or [0.0]).astype(x.dtype.numpy),
        ]
        return c.add("tree_ensemble", x, *map(CompileTimeConstant, tables), count=count, reduce=reduce)

    def _check(self, c: Call, x: Operand, count: int) -> None:
        """Raises `ModelError` where a path through the tables would not end, or read outside of them."""
        features = static_sizes(x.shape[1:])
        widest = max([t.feature for t in self.tests], default=0)
        if features is None or widest >= features[0] or min([t.feature for t in self.tests], default=0) < 0:
            c.fail(
                f"its trees test feature {widest} of {x!r}", "give the model as many features as it was trained with"
            )
        if any(not 0 <= t < count for leaf in self.leaves for t, _ in leaf):
            c.fail(f"a leaf has a target that is none of {count}", DAMAGED)
        seen: set[int] = set()
        open_ = list(self.roots)
        while open_:
            at = open_.pop()
            if at >= len(self.tests) or at < -len(self.leaves) or (at >= 0 and at in seen):
                c.fail("its nodes are no trees: one is missing, or reached twice", DAMAGED)
            if at >= 0:
                seen.add(at)
                open_ += [self.tests[at].passed, self.tests[at].failed]


def numbers(attributes: Mapping[str, Any], name: str, default: float, count: int) -> list[float]:
    """Returns a list of numbers, which may be a tensor under another name; *count* times the *default* where it is absent."""
    found = attributes.get(f"{name}_as_tensor", attributes.get(name))
    return [default] * count if found is None or not len(found) else np.asarray(found).reshape(-1).tolist()


def rows_of(c: Call, *columns: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Returns the rows of a table that attributes are the columns of; raises `ModelError` for columns of several lengths."""
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        c.fail(f"the attributes that describe its trees should be equally long, and are {lengths}", DAMAGED)
    return zip(*columns, strict=True)


def _places(keys: Sequence[tuple[int, int]], modes: Sequence[str]) -> dict[tuple[int, int], int]:
    """Returns the numbers of nodes, by tree and node: those of inner nodes from 0 up, those of leaves from -1 down."""
    found: dict[tuple[int, int], int] = {}
    counts = {True: 0, False: 0}
    for key, mode in zip(keys, modes, strict=True):
        is_leaf = mode == "LEAF"
        found[key] = -1 - counts[is_leaf] if is_leaf else counts[is_leaf]
        counts[is_leaf] += 1
    return found


def by_node_ids(c: Call, side: str) -> Forest:
    """Returns the trees as operator sets 1 to 4 have them: a node has the number of its tree and its own, and leaves are nodes.

    *side* (`class` or `target`) is how the names of the leaves' attributes begin. The first node of a tree is its root.
    """
    a = c.attributes
    keys = list(rows_of(c, a.get("nodes_treeids", ()), a.get("nodes_nodeids", ())))
    modes = [m.removeprefix("BRANCH_") for m in a.get("nodes_modes", ())]
    if not keys or len(modes) != len(keys) or not ACCEPTED.keys() | {"LEAF"} >= set(modes):
        c.fail(f"it has {len(keys)} nodes, of the modes {', '.join(sorted(set(modes)))}", DAMAGED)
    places = _places(keys, modes)
    forest = Forest(leaves=[[] for _ in range(modes.count("LEAF"))])
    columns = [a.get(f"{side}_{k}", ()) for k in ("treeids", "nodeids", "ids")]
    for tree, node, target, weight in rows_of(c, *columns, numbers(a, f"{side}_weights", 0.0, 0)):
        if places.get((tree, node), 0) >= 0:
            c.fail(f"node {node} of tree {tree} has a weight, and is no leaf", DAMAGED)
        forest.leaves[-1 - places[tree, node]].append((target, weight))
    optional = [numbers(a, f"nodes_{k}", 0.0, len(keys)) for k in ("values", "missing_value_tracks_true")]
    needed = [a.get(f"nodes_{k}", ()) for k in ("featureids", "truenodeids", "falsenodeids")]
    for (tree, _), mode, split, nan, feature, *ways in rows_of(c, keys, modes, *optional, *needed):
        if mode != "LEAF":
            passed, failed = (places.get((tree, way), len(keys)) for way in ways)  # a missing node is none below that
            forest.tests.append(Test(feature, mode, split, bool(nan), passed, failed))
    roots = {tree: places[tree, node] for tree, node in reversed(keys)}
    forest.roots = [roots[tree] for tree in sorted(roots)]
    return forest
