"""The statements that all of C's family writes alike: loops, branches, bindings, stores, views."""

from __future__ import annotations

from typing import Final

from weft.codegen.c_family.accesses import store
from weft.codegen.c_family.c_types import memory_type, scalar_type
from weft.codegen.c_family.dialect import StatementWriter
from weft.codegen.c_family.expressions import lanes
from weft.codegen.c_family.narrow_counters import declare_counter, is_narrow_loop, narrow_form
from weft.codegen.c_family.writer import Writer
from weft.ir import INDEX, Const, Eq, mentions, post_order
from weft.loop import Buffer, Eval, For, If, Let, Load, LoopKind, Seq, Stmt, Store, View, While

MOST_UNROLLED: Final = 64
"""Iterations of a loop over registers that the C compiler is told to unroll, so that arrays become registers."""


def pointer_type(f: Writer, buffer: Buffer) -> str:
    """Returns the type of a pointer to the elements of *buffer*, with the space before its name."""
    alias = " WEFT_MAY_ALIAS" if f.has_puns else ""
    return f"{f.dialect.address_space(buffer.scope)}{memory_type(buffer.dtype)}{alias} *"


def write(f: Writer, s: Stmt) -> None:
    """Writes a statement; raises `LoweringError` for one that had to be lowered before."""
    handler = f.dialect.statements.get(type(s))
    if handler is None:
        raise f.error(f"{type(s).__name__} has no translation to {f.dialect.name}")
    handler(f, s)


def _seq(f: Writer, s: Seq) -> None:
    for part in s.body:
        write(f, part)


def _store(f: Writer, s: Store) -> None:
    with f.scope():
        store(f, s)


def _eval(f: Writer, s: Eval) -> None:
    with f.scope():
        for x in lanes(f, s.value):
            f.line(f"(void){x};")


def _let(f: Writer, s: Let) -> None:
    """Writes a binding, and those directly inside it; a vector is bound to the values of its lanes."""
    body: Stmt = s
    with f.scope():
        while isinstance(body, Let):
            with f.scope():
                value = f.value(body.value)
            if isinstance(value, str):
                name = f.declare(body.var)
                f.note_index(body.var, body.value)
                f.local(name, f.dialect.constant(scalar_type(body.var.dtype), name, value))
            elif isinstance(value, tuple):
                f.known[-1][body.var] = tuple([f.temporary(body.var.dtype.element, x) for x in value])
            else:
                f.known[-1][body.var] = f.named(body.var.dtype, value)
            body = body.body
        write(f, body)


def _for(f: Writer, s: For) -> None:
    if s.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED):
        raise f.error(f"the loop over {s.var.name} is still {s.kind}", hint="lower it first")
    is_narrow = is_narrow_loop(f, s)
    narrow = narrow_form(s.extent) if is_narrow else None
    with f.scope():
        begin, extent = f.scalar(s.begin), f.scalar(s.extent if narrow is None else narrow)
        end = extent if begin == "0" else f.temporary(INDEX, f"{begin} + {extent}")
    if isinstance(s.extent, Const) and 1 < int(s.extent.value) <= MOST_UNROLLED and _is_unrolled(s):
        f.line(f"WEFT_UNROLL({s.extent.value})")
    type_, name = declare_counter(f, s.var, narrow=is_narrow)
    f.note_index(s.var, s.begin)
    with f.suite(f"for ({type_} {name} = {begin}; {name} < {end}; {name}++)"):
        write(f, s.body)


def _is_unrolled(s: For) -> bool:
    """Tells whether a loop is marked so, or numbers registers: they can only be named."""
    return s.kind is LoopKind.UNROLLED or any(
        isinstance(n, (Load, Store)) and n.buffer.in_registers and any(mentions(i, s.var) for i in n.indices)
        for n in post_order(s.body)
    )


def _if(f: Writer, s: If) -> None:
    with f.scope():
        cond = f.scalar(s.cond)
    # compilers warn of a comparison in two pairs of parentheses, since an assignment is written so on purpose
    has_own = isinstance(s.cond, Eq) and cond.startswith("(")
    with f.suite(f"if {cond}" if has_own else f"if ({cond})"):
        write(f, s.then)
    if s.other is not None:
        with f.suite("else"):
            write(f, s.other)


def _while(f: Writer, s: While) -> None:
    with f.suite("for (;;)"):
        with f.scope():
            f.line(f"if (!{f.scalar(s.cond)}) break;")
        write(f, s.body)


def _view(f: Writer, s: View) -> None:
    with f.scope():
        offset = f.scalar(s.offset)
    source, kind = f.name(s.source), pointer_type(f, s.buffer)
    scale = s.source.dtype.lanes
    at = source if offset == "0" else f"({source} + {offset if scale == 1 else f'{scale} * {offset}'})"
    name = f.declare(s.buffer)
    with f.suite(""):
        f.local(name, f"{kind}const {name} = ({kind})({f.dialect.address_space(s.buffer.scope)}void *){at};")
        write(f, s.body)


COMMON: Final[dict[type[Stmt], StatementWriter]] = {
    Seq: _seq,
    Store: _store,
    Eval: _eval,
    Let: _let,
    For: _for,
    If: _if,
    While: _while,
    View: _view,
}
"""The writers of statements that a dialect begins with."""
