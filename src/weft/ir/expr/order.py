"""A total order on expressions that is the same in every run: by variables' serial numbers, then by structure."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from weft.ir.expr.base import Expr, Var
from weft.ir.expr.node import Node

Key: TypeAlias = tuple[Any, ...]

_LAST: Final = 1 << 62  # sorts expressions without variables behind those with variables
_DEPTH: Final = 24  # of structure that keys compare; keys of deeper trees are equal below it
_LIMIT: Final = 50_000
_MEMO: Final[dict[Node, tuple[Key, int]]] = {}


def order_key(e: Expr) -> Key:
    """Returns the sort key of *e*: outer variables, which are made first, sort before inner ones."""
    if type(e) is Var:
        return (e.serial,)
    known = _MEMO.get(e)
    return known[0] if known else _walk(e)


def _walk(root: Node) -> Key:
    if len(_MEMO) > _LIMIT:
        _MEMO.clear()
    stack = [root]
    while stack:
        n = stack[-1]
        todo = [k for k in n.children() if k not in _MEMO]
        if n in _MEMO or not todo:
            stack.pop()
            _MEMO[n] = _key(n)
        else:
            stack += todo
    return _MEMO[root][0]


def _key(n: Node) -> tuple[Key, int]:
    if type(n) is Var:
        return (n.serial,), 1
    kids = [_MEMO[k] for k in n.children()]
    depth = 1 + max([d for _, d in kids], default=0)
    first = min([k[0] for k, _ in kids], default=_LAST)
    shape = (first, type(n).__name__, *(_leaf(getattr(n, f)) for f in n.__match_args__))
    return (shape if depth > _DEPTH else (*shape, *(k for k, _ in kids))), depth


def _leaf(value: object) -> Key:
    """A field that is no sub-node, comparable with any other field; things known by identity have serial numbers."""
    if isinstance(value, Node | tuple):
        return ()
    if isinstance(value, int | float):
        return (0, value) if value == value else (1, 0)
    serial = getattr(value, "serial", None)
    return (2, serial) if isinstance(serial, int) else (3, str(value))
