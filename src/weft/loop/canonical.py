"""A text that two programs share exactly if they are the same but for names: the key of a kernel cache, and of tuning records.

Variables, buffers and blocks are numbered in the order in which a fixed walk meets them; every distinct node is written once, on
a line of its own, so the length is linear in the size of the program however much is shared.
"""

from __future__ import annotations

from typing import Any

from weft.ir import Const, Node, Var
from weft.loop.buffer import Buffer
from weft.loop.nodes import Block, Function, Program


def canonical_text(program: Program) -> str:
    """Returns the text of *program* without the names of variables, buffers and blocks; those of functions stay."""
    return "\n".join([_Writer().function(f) for f in program.functions]) + "\n"


def structure_text(program: Program) -> tuple[str, tuple[int, ...]]:
    """Returns the canonical text with a mark in the place of each integer, and these integers in the order of the marks.

    Programs of one such text differ in sizes alone: a schedule that is fast for one is worth trying for another.
    """
    sizes: list[int] = []
    lines = [_SizelessWriter(sizes).function(f) for f in program.functions]
    return "\n".join(lines) + "\n", tuple(sizes)


class _Writer:
    """Numbers the nodes, variables and buffers of one function, and writes a line for each."""

    def __init__(self) -> None:
        self.ids: dict[object, int] = {}
        self.lines: list[str] = []
        self.blocks: dict[str, int] = {}

    def function(self, f: Function) -> str:
        """Returns the lines of a function."""
        for part in (*f.params, *f.notes, f.body):
            self.visit(part)
        params = ",".join([self.field(p) for p in f.params])
        return "\n".join([*self.lines, f"def {f.name!r}({params}) {self.field(f.body)} {self.field(f.notes)}"])

    def visit(self, root: Node | Buffer) -> None:
        """Writes *root* after its parts."""
        stack: list[Node | Buffer] = [root]
        while stack:
            n = stack[-1]
            if n in self.ids:
                stack.pop()
            elif todo := [p for p in self.parts(n) if p not in self.ids]:
                stack += reversed(todo)
            else:
                stack.pop()
                self.lines.append(self.describe(n))
                self.ids[n] = len(self.ids)

    def parts(self, n: Node | Buffer) -> list[Node | Buffer]:
        """Returns the parts of *n* that have lines of their own."""
        return parts(n)

    def describe(self, n: Node | Buffer) -> str:
        """Returns the line of a node: its class and its fields, its parts by their numbers."""
        if isinstance(n, Var):
            return f"var {n.dtype}"
        if isinstance(n, Buffer):
            strides = "" if n.strides is None else self.field(n.strides)
            return f"buffer {n.dtype} {n.scope!r} {self.field(n.shape)} {strides}"
        fields = type(n).__match_args__
        values = [getattr(n, f) for f in fields]
        if isinstance(n, Block):
            values[fields.index("name")] = self.blocks.setdefault(n.name, len(self.blocks))
        return f"{type(n).__name__} {' '.join([self.field(v) for v in values])}"

    def field(self, value: Any) -> str:
        """Returns a field: a number for a part, else its value."""
        if isinstance(value, Node | Buffer):
            return f"#{self.ids[value]}"
        if isinstance(value, tuple):
            return f"({','.join([self.field(v) for v in value])})"
        return repr(value)


class _SizelessWriter(_Writer):
    """Writes integers in their places, as marks, and appends them to *sizes*: a line of its own would show which are equal."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.sizes = sizes

    def parts(self, n: Node | Buffer) -> list[Node | Buffer]:
        """Returns the parts of *n* that are no integers."""
        return [p for p in parts(n) if not _is_size(p)]

    def field(self, value: Any) -> str:
        """Returns a field, a mark for an integer."""
        if not _is_size(value):
            return super().field(value)
        self.sizes.append(int(value.value))
        return f"?{value.dtype}"


def _is_size(value: object) -> bool:
    return isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool)


def parts(n: Node | Buffer) -> list[Node | Buffer]:
    """Returns the direct parts of *n*, nodes and buffers, variables that it binds included."""
    if isinstance(n, Buffer):
        return [*n.shape, *(n.strides or ())]
    if isinstance(n, Var):
        return []
    found: list[Node | Buffer] = []
    for name in type(n).__match_args__:
        value = getattr(n, name)
        found += [v for v in (value if isinstance(value, tuple) else (value,)) if isinstance(v, Node | Buffer)]
    return found
