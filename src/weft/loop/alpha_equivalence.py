"""Are two programs the same, but for the names of their variables and buffers?"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from weft.ir import Node, Var, print_expr
from weft.loop.buffer import Buffer
from weft.loop.nodes import Function, Program, Stmt
from weft.loop.printer import MARK, print_function
from weft.support.errors import VerifyError

Comparable: TypeAlias = Program | Function | Node
_Pair: TypeAlias = tuple[Any, Any, Any, Any]
"""Two nodes or buffers to compare, and the innermost statements that contain them."""
_SHOWN: Final = 8  # lines of a statement that an error shows


class _Comparison:
    """One walk over two structures at once, with the variables and buffers matched so far, in both directions."""

    def __init__(self) -> None:
        self.there: dict[object, object] = {}
        self.back: dict[object, object] = {}
        self.seen: set[tuple[object, object]] = set()
        self.stack: list[_Pair] = []

    def first_difference(self, a: object, b: object) -> _Pair | None:
        """Returns the first pair that differs, in program order."""
        self.stack = [(a, b, None, None)]
        while self.stack:
            pair = self.stack.pop()
            if not self.is_alike(*pair):
                return pair
        return None

    def is_alike(self, a: Any, b: Any, in_a: Any, in_b: Any) -> bool:
        """Compares two nodes without their parts, which it pushes to be compared next."""
        if type(a) is not type(b):
            return False
        if isinstance(a, tuple):
            self.stack += [(x, y, in_a, in_b) for x, y in reversed(list(zip(a, b, strict=False)))]
            return len(a) == len(b)
        if isinstance(a, Var):
            return a.dtype is b.dtype and self.match(a, b)
        if isinstance(a, Buffer):
            return self.is_alike_buffer(a, b, in_a, in_b)
        if isinstance(a, Node):
            self.push_fields(a, b, in_a, in_b)
            return True
        return a.hex() == b.hex() if isinstance(a, float) else bool(a == b)

    def is_alike_buffer(self, a: Buffer, b: Buffer, in_a: Any, in_b: Any) -> bool:
        """Compares two buffers; those that are met for the first time are matched, and their shapes compared."""
        if a not in self.there and b not in self.back:
            self.stack.append(((a.shape, a.strides), (b.shape, b.strides), in_a, in_b))
        return a.dtype is b.dtype and a.scope == b.scope and self.match(a, b)

    def match(self, a: object, b: object) -> bool:
        """Matches *a* with *b* if neither is matched yet, and tells whether they are each other's match."""
        return self.there.setdefault(a, b) is b and self.back.setdefault(b, a) is a

    def push_fields(self, a: Node, b: Node, in_a: Any, in_b: Any) -> None:
        """Compares the fields of two nodes of one class, unless that has been done."""
        if (a, b) in self.seen:
            return
        self.seen.add((a, b))
        around = (a, b) if isinstance(a, Stmt) else (in_a, in_b)
        fields = reversed(type(a).__match_args__)
        self.stack += [(getattr(a, f), getattr(b, f), *around) for f in fields]


def is_same(a: Comparable, b: Comparable) -> bool:
    """Answers whether *a* and *b* are equal up to renaming of variables and buffers; functions match by position."""
    return find_difference(a, b) is None


def check_same(a: Comparable, b: Comparable) -> None:
    """Raises `VerifyError` with the first difference between *a* and *b*, up to renaming."""
    difference = find_difference(a, b)
    if difference is not None:
        raise VerifyError(difference)


def find_difference(a: Comparable, b: Comparable) -> str | None:
    """Describes the first difference between *a* and *b*, up to renaming; None if there is none."""
    if isinstance(a, Program) and isinstance(b, Program):
        if len(a.functions) != len(b.functions):
            return f"{len(a.functions)} functions against {len(b.functions)}"
        pairs = zip(a.functions, b.functions, strict=True)
        return next((d for f, g in pairs if (d := find_difference(f, g)) is not None), None)
    if isinstance(a, Function) and isinstance(b, Function):
        return _function_difference(a, b)
    found = _Comparison().first_difference(a, b)
    return None if found is None else f"{_show(found[0])}\n  is not\n{_show(found[1])}"


def _function_difference(f: Function, g: Function) -> str | None:
    if f.name != g.name:
        return f"the function {f.name} against {g.name}"
    parts_f, parts_g = (f.params, f.notes, f.body), (g.params, g.notes, g.body)
    found = _Comparison().first_difference(parts_f, parts_g)
    if found is None:
        return None
    x, y, s, t = found
    return f"in {f.name}:\n{_show(x)}\n  is not\n{_show(y)}{_inside(f, s, x)}{_inside(g, t, y)}"


def _show(thing: object) -> str:
    text = f"{print_expr(thing)}: {thing.dtype}" if isinstance(thing, Var) else str(thing)
    lines = text.splitlines()
    shown = lines if len(lines) <= _SHOWN else [*lines[:_SHOWN], "..."]
    return "\n".join([f"    {line}" for line in shown])


def _inside(f: Function, s: Stmt | None, part: object) -> str:
    """Shows the line at which the statement *s* around *part* begins, if there is one."""
    if s is None or s is part:
        return ""
    lines = [x.strip().removesuffix(MARK) for x in print_function(f, s).splitlines() if x.endswith(MARK)]
    return f"\n  in\n    {lines[0]}" if lines else ""
