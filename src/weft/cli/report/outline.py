"""The loops of a scheduled kernel at a glance: one line for a nest of loops, down to the names of the blocks in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.ir import print_expr
from weft.loop import (
    Alloc,
    Block,
    For,
    If,
    Let,
    Seq,
    Stmt,
    Store,
    View,
    While,
    parse_program,
    statements,
    sub_statements,
)

Item = dict[str, Any]


def outline(text: str) -> dict[str, Any]:
    """Returns the outline of a program's entry function: its buffers, and its loops as a tree.

    An item of the tree has `loops`, the kind, the variable and the extent of each around the next; their bodies: a `block` with
    the buffers that it reads and writes and the axes that it reduces, or other `code`; and `inside`, the items in it.
    """
    body = parse_program(text).entry.body
    made = [s.buffer for s in statements(body) if isinstance(s, Alloc)]
    buffers = [{"name": b.name, "type": _type(b.dtype, b.shape), "scope": b.scope} for b in made]
    return {"buffers": buffers, "items": _items(body)}


def _type(dtype: object, shape: Sequence[Any]) -> str:
    return f"{dtype}[{', '.join(print_expr(s) for s in shape)}]"


def _items(s: Stmt) -> list[Item]:
    return [_item(part) for part in _parts(s)]


def _parts(s: Stmt) -> Iterable[Stmt]:
    """Yields the statements of a suite, without the names that they are under."""
    while isinstance(s, Let | Alloc | View):
        s = s.body
    if not isinstance(s, Seq):
        yield s
        return
    for part in s.body:
        yield from _parts(part)


def _item(s: Stmt) -> Item:
    if isinstance(s, For):
        return _loop(s)
    if isinstance(s, Block):
        return _block(s)
    if isinstance(s, If | While):
        word = "if" if isinstance(s, If) else "while"
        inside = [item for b in sub_statements(s) for item in _items(b)]
        return {"loops": [], "code": f"{word} {print_expr(s.cond)}", "inside": inside}
    code = f"write {s.buffer.name}" if isinstance(s, Store) else type(s).__name__.lower()
    return {"loops": [], "code": code, "inside": []}


def _loop(s: For) -> Item:
    """Returns one item for a loop and all loops that are alone in the one before."""
    own = [s.kind.value, s.var.name, print_expr(s.extent)]
    inside = _items(s.body)
    if len(inside) == 1:
        return {**inside[0], "loops": [own, *inside[0]["loops"]]}
    return {"loops": [own], "inside": inside}


def _block(s: Block) -> Item:
    inner = any(isinstance(x, For | Block) for x in statements(s.body))
    return {
        "loops": [],
        "block": s.name,
        "reduces": [a.var.name for a in s.axes if a.kind.value == "reduce"],
        "reads": list(dict.fromkeys(r.buffer.name for r in s.reads)),
        "writes": list(dict.fromkeys(r.buffer.name for r in s.writes)),
        "inside": _items(s.body) if inner else [],
    }
