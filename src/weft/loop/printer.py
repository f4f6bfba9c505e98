"""Text of loop programs: Python syntax, which `loop.parser` reads back.

    def main(A: f32[1024, n], C: f32[1024], n: i64):
        acc = alloc("register", f32[4])
        for i in parallel(0, 1024):
            for k in range(0, n):
                with block("C", vi=spatial(1024, i), vk=reduce(n, k)):
                    reads(A[vi, vk])
                    writes(C[vi])
                    with init():
                        C[vi] = 0.0
                    C[vi] = C[vi] + A[vi, vk]

`x = let(value)`, `b = alloc(scope, type)` and `b = view(source, offset, type)` bind to the end of their suite. Where the text
goes on after that, they are written `with let(value) as x:` and so on. `x = alias(value)` names a part of an expression in the
rest of the suite, for the text alone: an expression that uses its parts many times would be exponentially long if written out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from weft.ir import (
    ATOM,
    ONE,
    TRUE,
    ZERO,
    Add,
    AliasPrinter,
    Const,
    Expr,
    ExprPrinter,
    Names,
    Node,
    Text,
    TooLong,
    Var,
    identifier,
    index,
    is_reserved,
    post_order,
    print_expr,
    writes,
)
from weft.loop.buffer import Buffer
from weft.loop.nodes import (
    Address,
    Alloc,
    Assert,
    Axis,
    Block,
    Call,
    Eval,
    For,
    Function,
    If,
    Let,
    Load,
    Program,
    Range,
    Region,
    Seq,
    Stmt,
    Store,
    View,
    While,
)
from weft.loop.notes import Note, UserNote
from weft.loop.visit import own_exprs

MARK: Final = "  # <-- here"
LONGEST_VALUE: Final = 4000
"""Characters of a value, from which on its parts are given names."""

_INDENT: Final = "    "


@writes(Load)
def _load(e: Load, p: ExprPrinter) -> Text:
    return f"{p.names.of(e.buffer)}[{_indices(e.indices, p)}]", ATOM


@writes(Address)
def _address(e: Address, p: ExprPrinter) -> Text:
    return f"{p.names.of(e.buffer)}.at({', '.join([p(i) for i in e.indices])})", ATOM


def _indices(indices: Iterable[Expr], p: ExprPrinter) -> str:
    return ", ".join([p(i) for i in indices]) or "()"


def end_of(begin: Expr, extent: Expr) -> Expr:
    """Returns where a range ends, in the form from which `extent_of` finds *extent* again."""
    if begin is ZERO:
        return extent
    if isinstance(begin, Const) and isinstance(extent, Const):
        return index(int(begin.value) + int(extent.value))
    return Add(begin, extent)


def extent_of(begin: Expr, end: Expr) -> Expr:
    """Returns the extent of a range that is written as its two ends."""
    if begin is ZERO:
        return end
    if isinstance(end, Add) and end.a is begin and not (isinstance(begin, Const) and isinstance(end.b, Const)):
        return end.b
    return end - begin


class StmtPrinter:
    """Writes statements line by line, marking those that are, or directly contain, the node *mark*."""

    def __init__(self, names: Names, mark: Node | None = None) -> None:
        self.names = names
        self.expr = ExprPrinter(names)
        self.mark = mark
        self.lines: list[str] = []
        self._aliases: list[tuple[str, str]] = []

    def value(self, e: Expr) -> str:
        """Returns the text of *e*, a value that a statement computes; `line` writes the aliases that it needs."""
        try:
            return self.expr.text(e, LONGEST_VALUE)[0]
        except TooLong:
            printer = AliasPrinter(self.names, LONGEST_VALUE)
            text = printer(e)
            self._aliases += printer.aliases
            return text

    def line(self, depth: int, text: str, s: Stmt | None = None) -> None:
        """Adds a line, after the aliases in it; *s* is the statement that it begins."""
        self.lines += [f"{_INDENT * depth}{name} = alias({value})" for name, value in self._aliases]
        self._aliases.clear()
        marked = s is not None and self.mark is not None and self._is_marked(s)
        self.lines.append(f"{_INDENT * depth}{text}{MARK if marked else ''}")

    def _is_marked(self, s: Stmt) -> bool:
        if s is self.mark:
            return True
        if isinstance(self.mark, Axis | Region):
            return self.mark in s.children()
        return isinstance(self.mark, Expr) and any(n is self.mark for e in own_exprs(s) for n in post_order(e))

    def suite(self, s: Stmt, depth: int) -> None:
        """Writes *s* as the lines of a suite."""
        while True:
            if isinstance(s, Let | Alloc | View):
                name, value = self.binding(s)
                self.line(depth, f"{name} = {value}", s)
                s = s.body
            elif isinstance(s, Seq) and s.body:
                for part in s.body[:-1]:
                    self.statement(part, depth)
                s = s.body[-1]
            else:
                self.statement(s, depth)
                return

    def statement(self, s: Stmt, depth: int) -> None:
        """Writes one statement, after which others may follow."""
        _STATEMENTS[type(s)](self, s, depth)

    def binding(self, s: Let | Alloc | View) -> tuple[str, str]:
        """Returns the name that *s* binds, and the text of its value."""
        if isinstance(s, Let):
            value = f"let({self.value(s.value)})"
            return self.names.of(s.var), value
        b = s.buffer
        strides = self.strides(b)
        if isinstance(s, Alloc):
            return self.names.of(b), f"alloc({quoted(b.scope)}, {self.type(b)}{strides})"
        scope = "" if b.scope == s.source.scope else f", scope={quoted(b.scope)}"
        made = f"view({self.names.of(s.source)}, {self.expr(s.offset)}, {self.type(b)}{strides}{scope})"
        return self.names.of(b), made

    def type(self, b: Buffer) -> str:
        """Returns the element type and the shape of a buffer."""
        return f"{b.dtype}[{_indices(b.shape, self.expr)}]"

    def strides(self, b: Buffer) -> str:
        """Returns the strides of a buffer as a keyword argument, if it has any."""
        if b.strides is None:
            return ""
        items = [self.expr(s) for s in b.strides]
        return f", strides=({', '.join(items)}{',' * (len(items) == 1)})"

    def region(self, r: Region) -> str:
        """Returns the text of a region."""
        return f"{self.names.of(r.buffer)}[{', '.join([self.range(x) for x in r.ranges]) or '()'}]"

    def range(self, r: Range) -> str:
        """Returns the text of a range: its only index, or `begin:end`."""
        return self.expr(r.begin) if r.extent is ONE else f"{self.expr(r.begin)}:{self.expr(end_of(r.begin, r.extent))}"

    def declare(self, p: Buffer | Var) -> str:
        """Returns a parameter with its type."""
        if isinstance(p, Var):
            return f"{self.names.of(p)}: {p.dtype}"
        strides = self.strides(p)
        if not strides and p.scope == "global":
            return f"{self.names.of(p)}: {self.type(p)}"
        return f"{self.names.of(p)}: buffer({quoted(p.scope)}, {self.type(p)}{strides})"


def _for(p: StmtPrinter, s: For, depth: int) -> None:
    begin, end = p.expr(s.begin), p.expr(end_of(s.begin, s.extent))
    notes = "".join([f", {a}" for a in note_texts(s.notes, p.names)])
    p.line(depth, f"for {p.names.of(s.var)} in {s.kind.value}({begin}, {end}{notes}):", s)
    p.suite(s.body, depth + 1)


def _while(p: StmtPrinter, s: While, depth: int) -> None:
    p.line(depth, f"while {p.expr(s.cond)}:", s)
    p.suite(s.body, depth + 1)


def _if(p: StmtPrinter, s: If, depth: int) -> None:
    word = "if"
    while True:
        p.line(depth, f"{word} {p.expr(s.cond)}:", s)
        p.suite(s.then, depth + 1)
        if not isinstance(s.other, If):
            break
        s, word = s.other, "elif"
    if s.other is not None:
        p.line(depth, "else:")
        p.suite(s.other, depth + 1)


def _scoped(p: StmtPrinter, s: Let | Alloc | View, depth: int) -> None:
    name, value = p.binding(s)
    p.line(depth, f"with {value} as {name}:", s)
    p.suite(s.body, depth + 1)


def _store(p: StmtPrinter, s: Store, depth: int) -> None:
    name = p.names.of(s.buffer)
    if s.mask is None:
        p.line(depth, f"{name}[{_indices(s.indices, p.expr)}] = {p.value(s.value)}", s)
        return
    indices = "".join([f"{p.expr(i)}, " for i in s.indices])
    p.line(depth, f"{name}.store({indices}value={p.value(s.value)}, mask={p.value(s.mask)})", s)


def _block(p: StmtPrinter, s: Block, depth: int) -> None:
    head = [quoted(s.name)]
    for a, b in zip(s.axes, s.bindings, strict=False):  # the verifier's complaint must be printable
        head.append(f"{p.names.of(a.var)}={a.kind.value}({p.expr(a.extent)}, {p.expr(b)})")
    if s.predicate is not TRUE:
        head.append(f"where=({p.expr(s.predicate)})")
    p.line(depth, f"with block({', '.join(head)}):", s)
    p.line(depth + 1, f"reads({', '.join([p.region(r) for r in s.reads])})")
    p.line(depth + 1, f"writes({', '.join([p.region(r) for r in s.writes])})")
    if s.notes:
        p.line(depth + 1, f"annotate({', '.join(note_texts(s.notes, p.names))})")
    if s.init is not None:
        p.line(depth + 1, "with init():")
        p.suite(s.init, depth + 2)
    p.suite(s.body, depth + 1)


def _call(p: StmtPrinter, s: Call, depth: int) -> None:
    args = [p.value(a) for a in s.args]
    if is_plain(s.callee):
        p.line(depth, f"{s.callee}({', '.join(args)})", s)
    else:
        p.line(depth, f"call({', '.join([quoted(s.callee), *args])})", s)


def _assert(p: StmtPrinter, s: Assert, depth: int) -> None:
    parts = [p.value(s.cond), quoted(s.message), *[p.value(v) for v in s.values]]
    p.line(depth, f"check({', '.join(parts)})", s)


def _eval(p: StmtPrinter, s: Eval, depth: int) -> None:
    p.line(depth, f"eval_({p.value(s.value)})", s)


def _seq(p: StmtPrinter, s: Seq, depth: int) -> None:
    if not s.body:
        p.line(depth, "pass", s)
    for part in s.body:
        p.statement(part, depth)


_STATEMENTS: Final[dict[type[Stmt], Callable[[StmtPrinter, Any, int], None]]] = {
    For: _for,
    While: _while,
    If: _if,
    Let: _scoped,
    Alloc: _scoped,
    View: _scoped,
    Store: _store,
    Block: _block,
    Call: _call,
    Assert: _assert,
    Eval: _eval,
    Seq: _seq,
}


def quoted(text: str) -> str:
    """Returns *text* as a Python string in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def is_plain(name: str) -> bool:
    """Answers whether a function of this *name* can be called by writing it down."""
    return identifier(name) == name and not is_reserved(name)


def note_texts(notes: Iterable[Note], names: Names) -> list[str]:
    """Returns notes as keyword arguments, those of one keyword as a list; a keyword that is no identifier is in a dictionary."""
    values: dict[str, list[str]] = {}
    for n in notes:
        values.setdefault(n.keyword, []).append(_note_value(n, names))
    return [_keyword(k, made[0] if len(made) == 1 else f"[{', '.join(made)}]") for k, made in values.items()]


def _keyword(key: str, value: str) -> str:
    return f"{key}={value}" if is_plain(key) else f"**{{{quoted(key)}: {value}}}"


def _note_value(n: Note, names: Names) -> str:
    """Returns the values of a note's fields: that of the only one, a tuple of several, 1 for none."""
    if isinstance(n, UserNote):
        return _value(n.value, names)
    values = tuple([getattr(n, f) for f in n.__match_args__])
    return _value(values if len(values) > 1 else values[0] if values else 1, names)


def _value(v: object, names: Names) -> str:
    if isinstance(v, Buffer):
        return names.of(v)
    if isinstance(v, tuple):
        return f"({', '.join([_value(x, names) for x in v])}{',' * (len(v) == 1)})"
    return quoted(v) if isinstance(v, str) else repr(v).replace("inf", "1e999")


def print_stmt(s: Stmt, mark: Node | None = None, names: Names | None = None) -> str:
    """Returns the text of a statement; the line of the statement that is (or contains the expression) *mark* is marked."""
    p = StmtPrinter(Names() if names is None else names, mark)
    p.suite(s, 0)
    return "\n".join(p.lines) + "\n"


def print_function(f: Function, mark: Node | None = None, names: Names | None = None) -> str:
    """Returns the text of a function, with *mark* marked."""
    p = StmtPrinter(Names() if names is None else names, mark)
    for x in f.params:
        p.names.of(x)
    name = f.name if is_plain(f.name) else identifier(f"{f.name}_")
    notes = ([] if name == f.name else [quoted(f.name)]) + note_texts(f.notes, p.names)
    if notes:
        p.line(0, f"@function({', '.join(notes)})")
    p.line(0, f"def {name}({', '.join([p.declare(x) for x in f.params])}):")
    p.suite(f.body, 1)
    return "\n".join(p.lines) + "\n"


def print_program(program: Program, mark: Node | None = None) -> str:
    """Returns the text of a program, with *mark* marked."""
    return "\n".join([print_function(f, mark) for f in program.functions])


def excerpt(f: Function, mark: Node | None, around: int = 12) -> str:
    """Returns the text of a function, with *mark* marked; of a long one, its head and the lines around the mark."""
    lines = print_function(f, mark).splitlines()
    marked = [k for k, line in enumerate(lines) if line.endswith(MARK)] or [0]
    shown = {k for m in marked for k in range(m - around, m + around + 1)} | set(range(3))
    kept: list[str] = []
    for k, line in enumerate(lines):
        if k in shown or len(lines) <= 4 * around:
            kept.append(line)
        elif not kept[-1].endswith("..."):
            kept.append("    ...")
    return "\n".join(kept)


def _repr(s: Stmt) -> str:
    return print_stmt(s).rstrip()


def _repr_region(r: Region) -> str:
    return StmtPrinter(Names()).region(r)


def _repr_axis(a: Axis) -> str:
    return f"{a.var.name}={a.kind.value}({print_expr(a.extent)})"


Region.__repr__ = _repr_region  # type: ignore[method-assign, assignment]
Axis.__repr__ = _repr_axis  # type: ignore[method-assign, assignment]
Stmt.__repr__ = _repr  # type: ignore[method-assign, assignment]
Function.__repr__ = print_function  # type: ignore[method-assign, assignment]
Program.__repr__ = print_program  # type: ignore[method-assign, assignment]
