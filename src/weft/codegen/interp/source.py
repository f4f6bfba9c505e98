"""Python source under construction: lines, scopes of known values, and the statement of each line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from weft.ir import Expr, Node
from weft.loop import Load, Stmt


@dataclass(frozen=True)
class Note:
    """A note on a line of the source: it is part of *statement*, and may access a buffer.

    That is `array[indices]`, in names and literals of the source, of the buffer *name*.
    """

    statement: Stmt | None
    name: str = ""
    array: str = ""
    indices: tuple[str, ...] = ()


class Source:
    """Lines of Python, with the names of values that have been computed already."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.notes: list[Note] = []
        self.depth = 0
        self.statement: Stmt | None = None
        self.known: dict[Expr, str] = {}
        self._added: list[Expr] = []
        self._serial = 0
        self._from_memory: dict[Node, bool] = {}
        self.constants: dict[str, Any] = {}
        self._constant_names: dict[Any, str] = {}

    def line(self, text: str, name: str = "", array: str = "", indices: tuple[str, ...] = ()) -> None:
        """Adds a line to the current suite; one that accesses a buffer says which, and where."""
        self.lines.append(" " * self.depth + text)
        self.notes.append(Note(self.statement, name, array, indices))

    def fresh(self, prefix: str = "t") -> str:
        """Returns a name that nothing has yet."""
        self._serial += 1
        return f"{prefix}{self._serial}"

    def learn(self, e: Expr, name: str) -> None:
        """Records that *name* holds the value of *e*, until the current scope ends."""
        self.known[e] = name
        self._added.append(e)

    def settle(self) -> None:
        """Forgets all values that were loaded: memory may change after the current statement."""
        for e in [e for e in self.known if self._loads(e)]:
            del self.known[e]

    def _loads(self, root: Expr) -> bool:
        """Answers whether the value of *root* comes from memory."""
        memo = self._from_memory
        stack: list[Node] = [root]
        while stack:
            n = stack[-1]
            if n in memo:
                stack.pop()
            elif todo := [k for k in n.children() if k not in memo]:
                stack += todo
            else:
                memo[n] = isinstance(n, Load) or any(memo[k] for k in n.children())
        return memo[root]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Values learnt inside are forgotten at the end: they may not have been computed, or may change."""
        start = len(self._added)
        yield
        for e in self._added[start:]:
            self.known.pop(e, None)
        del self._added[start:]

    @contextmanager
    def suite(self, header: str) -> Iterator[None]:
        """Writes *header*, and below it, indented and in a scope of its own, the lines written inside."""
        self.line(header)
        self.depth += 1
        with self.scope():
            yield
        self.line("pass")
        self.depth -= 1

    def constant(self, value: Any, key: Any) -> str:
        """Returns the name of a global that holds *value*; equal keys share one."""
        name = self._constant_names.get(key)
        if name is None:
            name = self._constant_names[key] = f"k{len(self.constants)}"
            self.constants[name] = value
        return name
