"""Python source for statements and functions. Loops of all kinds run as serial ones, and hints do nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.codegen.interp.expressions import ExprTranslator
from weft.codegen.interp.source import Source
from weft.ir import TRUE, ZERO, Const, Expr, Var, post_order
from weft.loop import (
    ATOMICS,
    Alloc,
    Assert,
    AxisKind,
    Block,
    Buffer,
    Call,
    Eval,
    For,
    Function,
    If,
    Let,
    Seq,
    Stmt,
    Store,
    View,
    While,
    effects_of,
    late_memory,
    updating_store,
)
from weft.support.dtypes import i64
from weft.support.errors import LoweringError

_NESTED_LOOPS: Final = 16
"""Python allows 20 loops within one another in one function; deeper ones go into a function of their own."""


class StmtTranslator:
    """Writes the functions of a program; *functions* are the Python names of all of them."""

    def __init__(self, source: Source, functions: Mapping[str, tuple[str, Function]]) -> None:
        self.source = source
        self.functions = functions
        self.expr = ExprTranslator(source)
        self.loops = 0
        self.extents: dict[Var, Expr] = {}  # of loops that begin at zero

    def function(self, python_name: str, f: Function) -> None:
        """Writes a function of pointers and scalars, and of the sizes that only shapes name."""
        self.expr = ExprTranslator(self.source)
        names = [self.expr.name(p) + ("_pointer" if isinstance(p, Buffer) else "") for p in f.params]
        symbols = symbols_of(f)
        header = ", ".join([*names, *[self.expr.name(v) for v in symbols]])
        with self.source.suite(f"def {python_name}({header}):"):
            for v in [*[p for p in f.params if isinstance(p, Var)], *symbols]:
                self.bind(v)
            self.expr.not_negative.update(symbols)
            for b in f.params:
                if isinstance(b, Buffer):
                    self.declare(b, f"h_window({self.expr.name(b)}_pointer, {self.type(b)})")
            self.body(f.body)

    def bind(self, v: Var) -> str:
        """Brings a variable into scope; returns its Python name."""
        name = self.expr.name(v)
        self.source.learn(v, name)
        return name

    def declare(self, b: Buffer, made: str) -> None:
        """Brings a buffer into scope, as the pair of arrays that the code *made* gives."""
        name = self.expr.name(b)
        self.source.line(f"{name}_flat, {name} = {made}", b.name)
        self.expr.buffers.add(b)

    def type(self, b: Buffer) -> str:
        """Returns the type, the shape and the strides of a buffer, as arguments."""
        shape = "".join([f"{self.expr.value(s)}, " for s in b.shape])
        strides = None if b.strides is None else f"({''.join([f'{self.expr.value(s)}, ' for s in b.strides])})"
        return f"{self.expr.dtype(b.dtype)}, ({shape}), {strides}"

    def body(self, s: Stmt) -> None:
        """Writes a statement; names bound on the way are in scope to the end of it."""
        with self.source.scope():
            while True:
                self.source.statement = s
                if isinstance(s, Let | Alloc | View):
                    _BINDINGS[type(s)](self, s)
                    s = s.body
                elif isinstance(s, Seq) and s.body:
                    for part in s.body[:-1]:
                        self.body(part)
                    s = s.body[-1]
                else:
                    _STATEMENTS[type(s)](self, s)
                    return

    def loop(self, header: str, write: Callable[[], None]) -> None:
        """Writes a loop, in a function of its own where loops would nest too deeply."""
        if self.loops < _NESTED_LOOPS:
            self.loops += 1
            with self.source.suite(header):
                write()
            self.loops -= 1
            return
        inner, outer, self.loops = self.source.fresh("g"), self.loops, 0
        with self.source.suite(f"def {inner}():"):
            self.loop(header, write)
        self.loops = outer
        self.source.line(f"{inner}()")


def symbols_of(f: Function) -> list[Var]:
    """Returns the sizes that occur in the shapes of parameters but are no parameters themselves."""
    exprs = [e for p in f.params if isinstance(p, Buffer) for e in (*p.shape, *(p.strides or ()))]
    found = dict.fromkeys(n for e in exprs for n in post_order(e) if isinstance(n, Var))
    return [v for v in found if v not in f.params]


def _let(t: StmtTranslator, s: Let) -> None:
    value = t.expr.value(s.value)
    t.source.settle()
    t.source.line(f"{t.bind(s.var)} = {value}")
    if t.expr.is_not_negative(s.value):
        t.expr.not_negative.add(s.var)


def _alloc(t: StmtTranslator, s: Alloc) -> None:
    if (late := late_memory(s.buffer)) is not None:
        asked = "keep" if late.is_kept else "output"
        t.declare(s.buffer, f"h_late.{asked}({late.number}, {t.type(s.buffer)})")
        return
    t.declare(s.buffer, f"h_allocate({t.type(s.buffer)})")


def _view(t: StmtTranslator, s: View) -> None:
    offset = t.expr.value(s.offset)
    scaled = f"{offset} * {s.source.dtype.lanes}" if s.source.dtype.lanes > 1 else offset
    t.declare(s.buffer, f"h_window(({t.expr.memory(s.source)}_flat, {scaled}), {t.type(s.buffer)})")


_BINDINGS: Final[dict[type[Stmt], Callable[[StmtTranslator, Any], None]]] = {Let: _let, Alloc: _alloc, View: _view}


def _for(t: StmtTranslator, s: For) -> None:
    begin, extent = t.expr.value(s.begin), t.expr.value(s.extent)
    t.source.settle()
    if s.begin is ZERO:
        t.extents[s.var] = s.extent
    if t.expr.is_not_negative(s.begin):
        t.expr.not_negative.add(s.var)

    def write() -> None:
        t.bind(s.var)
        t.body(s.body)

    t.loop(f"for {t.expr.name(s.var)} in range({begin}, {begin} + {extent}):", write)


def _while(t: StmtTranslator, s: While) -> None:
    def write() -> None:
        cond = t.expr.value(s.cond)
        t.source.settle()
        t.source.line(f"if not {cond}: break")
        t.body(s.body)

    t.loop("while True:", write)


def _if(t: StmtTranslator, s: If) -> None:
    cond = t.expr.value(s.cond)
    t.source.settle()
    with t.source.suite(f"if {cond}:"):
        t.body(s.then)
    if s.other is not None:
        with t.source.suite("else:"):
            t.body(s.other)


def _store(t: StmtTranslator, s: Store) -> None:
    name = t.expr.memory(s.buffer)
    indices = t.expr.guard(s.buffer, s.indices)
    value = t.expr.value(s.value)
    mask = None if s.mask is None else t.expr.value(s.mask)
    listed = "".join([f"{i}, " for i in indices])
    if s.value.dtype.lanes > 1:
        lanes = "None" if s.mask is None or s.mask.dtype.lanes == 1 else mask
        code = f"h_scatter({name}, ({listed}), {value}, {lanes})"
    else:
        code = f"{name}[{listed or '()'}] = {_in_range(s.value, value)}"
    guard = "" if s.mask is None or s.mask.dtype.lanes > 1 else f"if {mask}: "
    t.source.line(guard + code, s.buffer.name, name, indices)
    t.source.settle()


def _in_range(e: Expr, value: str) -> str:
    """Wraps values stored as `i64`, whose arithmetic is exact until then."""
    if e.dtype is not i64 or isinstance(e, Const | Var):
        return value
    return f"{value} if {-1 << 63} <= {value} < {1 << 63} else h_wrap({value}, h_i64)"


def _block(t: StmtTranslator, s: Block) -> None:
    if s.predicate is TRUE:
        _instance(t, s)
        return
    cond = t.expr.value(s.predicate)
    t.source.settle()
    with t.source.suite(f"if {cond}:"):
        _instance(t, s)


def _instance(t: StmtTranslator, s: Block) -> None:
    """Writes one instance of a block: its axes, checked against their extents, then `init` in the first, then the body."""
    for axis, binding in zip(s.axes, s.bindings, strict=True):
        value = t.expr.value(binding)
        name = t.bind(axis.var)
        t.source.line(f"{name} = {value}")
        t.expr.not_negative.add(axis.var)
        if t.extents.get(binding) is not axis.extent:  # type: ignore[call-overload]
            extent = t.expr.value(axis.extent)
            t.source.line(f"if not 0 <= {name} < {extent}: h_outside({axis.var.name!r}, {name}, {extent})")
    t.source.settle()
    if s.init is not None:
        first = [f"{t.expr.name(a.var)} == 0" for a in s.axes if a.kind is AxisKind.REDUCE]
        with t.source.suite(f"if {' and '.join(first) or 'True'}:"):
            t.body(s.init)
    t.body(s.body)


def _call(t: StmtTranslator, s: Call) -> None:
    known = effects_of(s)
    if known is not None and known.is_hint:
        return
    if s.callee in ATOMICS:
        _store(t, updating_store(s))
        return
    args = [t.expr.value(a) for a in s.args]
    if known is not None and known.token is not None:
        t.source.line(f"h_tokens.{known.token}({', '.join(args)})")
        return
    if s.callee in t.functions:
        python_name, callee = t.functions[s.callee]
        if symbols := symbols_of(callee):
            raise LoweringError(f"{s.callee} is called, but its size {symbols[0].name} is not a parameter")
    else:
        python_name = f"h_library[{s.callee!r}]"
    t.source.line(f"{python_name}({', '.join(args)})")
    t.source.settle()


def _assert(t: StmtTranslator, s: Assert) -> None:
    cond = t.expr.value(s.cond)
    with t.source.suite(f"if not {cond}:"):
        values = [t.expr.value(v) for v in s.values]
        t.source.line(f"h_fail({s.message!r}, {', '.join(values)})")
    t.source.settle()


def _eval(t: StmtTranslator, s: Eval) -> None:
    t.expr.value(s.value)
    t.source.settle()


def _nothing(t: StmtTranslator, s: Seq) -> None:
    """Writes nothing: the suite around has its `pass`."""


_STATEMENTS: Final[dict[type[Stmt], Callable[[StmtTranslator, Any], None]]] = {
    For: _for,
    While: _while,
    If: _if,
    Store: _store,
    Block: _block,
    Call: _call,
    Assert: _assert,
    Eval: _eval,
    Seq: _nothing,
}
