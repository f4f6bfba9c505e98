"""Decision trees: each row of a matrix goes from the root of each tree to a leaf, whose weights are added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.ir import INDEX, ONE, ZERO, Expr, Var, cast, const, eq, index, maximum, minimum, ne, select
from weft.loop import Buffer, Load, Stmt, While, allocated, cell, for_, get, let, put, seq, store
from weft.ops.registry import operator
from weft.ops.shapes import check_shape
from weft.support.dtypes import bool_, i32
from weft.support.errors import TypeMismatch
from weft.te import Tensor, extern

ACCEPTS_LESS: Final = 1
ACCEPTS_EQUAL: Final = 2
ACCEPTS_GREATER: Final = 4
ACCEPTS_NAN: Final = 8
"""The features that pass a node's test: less than its split, equal, greater, or NaN."""

_REDUCED: Final[dict[str, Callable[[Expr, Expr], Expr]]] = {
    "sum": lambda a, b: a + b,
    "min": minimum,
    "max": maximum,
}


@operator("tree_ensemble")
def tree_ensemble(
    x: Tensor,
    splits: Tensor,
    nodes: Tensor,
    roots: Tensor,
    leaves: Tensor,
    targets: Tensor,
    weights: Tensor,
    *,
    count: int,
    reduce: str = "sum",
) -> Tensor:
    """The weights of the leaves that each row of x [N, features] reaches, added up by their targets: [N, count].

    *nodes* are int32 rows (feature, the accepted outcomes, next node if passed, next node if not), with *splits* beside
    them; a tree begins at its node of *roots*. A next node below zero is a leaf: -1 the first. Leaf k has the *weights*, and the
    *targets* below *count* of them, from leaves[k] to before leaves[k + 1]. With min or max as *reduce*, targets without any
    weight are zero.
    """
    if x.rank != 2 or not x.dtype.is_float or splits.dtype is not x.dtype or reduce not in _REDUCED:
        raise TypeMismatch(
            f"tree_ensemble takes a matrix of floats, splits of its type, and reduces by {', '.join(_REDUCED)}"
        )
    check_shape("tree_ensemble: the table of nodes", nodes.shape, (splits.shape[0], 4))
    check_shape("tree_ensemble: the vector of targets", targets.shape, weights.shape)
    combine = _REDUCED[reduce]

    def of_row(ins: Sequence[Buffer], outs: Sequence[Buffer], row: Expr) -> Stmt:
        given, split, table, root, leaf, target, weight = ins
        node, tree, entry, t = cell("node", i32), Var("tree"), Var("entry"), Var("target")
        reached = Buffer("reached", (index(count),), bool_, "local")

        def field(at: Expr, k: int) -> Expr:
            return Load(table, (at, index(k)))

        def step(at: Expr) -> Stmt:
            def tested(value: Expr) -> Stmt:
                other = Load(split, (at,))
                passed = ne(field(at, 1) & _order(value, other), 0)
                return put(node, select(passed, field(at, 2), field(at, 3)))

            return let("value", Load(given, (row, cast(field(at, 0), INDEX))), tested)

        def added(begin: Expr, end: Expr) -> Stmt:
            def to(place: Expr) -> Stmt:
                old, new = Load(outs[0], (row, place)), cast(Load(weight, (begin + entry,)), x.dtype)
                made = combine(old, new) if reduce == "sum" else select(Load(reached, (place,)), combine(old, new), new)
                return seq(store(outs[0], (row, place), made), store(reached, (place,), const(True, bool_)))

            return for_(entry, end - begin, let("place", cast(Load(target, (begin + entry,)), INDEX), to))

        def of_leaf(k: Expr) -> Stmt:
            begin, end = (cast(Load(leaf, (k + n,)), INDEX) for n in (ZERO, ONE))
            return let("begin", begin, lambda b: let("end", end, lambda e: added(b, e)))

        down = While(get(node) >= 0, let("at", cast(get(node), INDEX), step))
        walk = seq(put(node, Load(root, (tree,))), down, let("leaf", cast(-1 - get(node), INDEX), of_leaf))
        clear = seq(store(outs[0], (row, t), const(0, x.dtype)), store(reached, (t,), const(False, bool_)))
        return allocated([node, reached], seq(for_(t, index(count), clear), for_(tree, roots.shape[0], walk)))

    inputs = [x, splits, nodes, roots, leaves, targets, weights]
    return extern([(x.shape[0], index(count))], inputs, of_row, [x.dtype], "tree_ensemble", along=(0,))[0]


def _order(value: Expr, other: Expr) -> Expr:
    """Returns the outcome of comparing a feature of that value with a split."""
    less, equal, greater, nan = (const(k, i32) for k in (ACCEPTS_LESS, ACCEPTS_EQUAL, ACCEPTS_GREATER, ACCEPTS_NAN))
    return select(value < other, less, select(eq(value, other), equal, select(other < value, greater, nan)))
