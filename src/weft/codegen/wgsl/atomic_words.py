"""Atomic updates in WGSL: their buffers are arrays of atomic words, `array<atomic<u32>>`, whatever their elements are.

    call("weft.atomic.add", y.at(i), x)     ->      loop {
                                                      let old = atomicLoad(&y[i]);
                                                      let made = bitcast<u32>(bitcast<f32>(old) + x);
                                                      if (atomicCompareExchangeWeak(&y[i], old, made).exchanged) { break; }
                                                    }

The language has additions, and extrema, of words that are numbers without a sign. No function may take an element of a buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weft.codegen.wgsl.kernel_writer import KernelWriter
from weft.codegen.wgsl.packed_accesses import place_of
from weft.codegen.wgsl.wgsl_types import value_type
from weft.ir import Add, Expr, Max, Min, Mul
from weft.loop import ATOMICS, Address, Buffer, Call, Stmt, statements
from weft.support.dtypes import DType
from weft.targets import Sight, sight_of

_SIGNS: Final[dict[type[Expr], str]] = {Add: "+", Mul: "*"}
_EXTREMA: Final[dict[type[Expr], str]] = {Min: "min", Max: "max"}


def updated_buffers(root: Stmt) -> Iterator[Buffer]:
    """Yields the buffers that atomic updates change."""
    for s in statements(root):
        if isinstance(s, Call) and s.callee in ATOMICS and isinstance(s.args[0], Address):
            yield s.args[0].buffer


def write_update(f: KernelWriter, s: Call) -> None:
    """Writes an atomic update of memory that all threads see."""
    at, value = s.args
    assert isinstance(at, Address)
    b, update = at.buffer, ATOMICS[s.callee]
    if sight_of(b.scope) is not Sight.GRID or b in f.parts:
        raise f.error(
            f"{b.name} is updated atomically, and no single binding", hint="keep the axes of the updates ordered"
        )
    with f.scope():
        element, x = f"{f.name(b)}[{f.temporary_of(place_of(f, at))}]", f.temporary_of(f.scalar(value))
        if b.dtype.is_int and update is Add:
            f.line(f"atomicAdd(&{element}, bitcast<u32>({x}));")
        elif b.dtype.kind == "uint" and update in _EXTREMA:
            f.line(f"atomic{_EXTREMA[update].title()}(&{element}, {x});")
        else:
            _swap(f, b.dtype, update, element, x)


def _swap(f: KernelWriter, dtype: DType, update: type[Expr], element: str, x: str) -> None:
    """Writes the update of a word by a compare-and-swap, again and again until no other one comes between."""
    old = f.fresh("old")
    before = f"bitcast<{value_type(dtype)}>({old})"
    with f.suite("loop"):
        f.line(f"let {old} = atomicLoad(&{element});")
        if update in _SIGNS:
            made = f"{before} {_SIGNS[update]} {x}"
        else:
            extreme = f.helper(f"{_EXTREMA[update]}_f32") if dtype.is_float else _EXTREMA[update]
            made = f"{extreme}({before}, {x})"
        f.line(f"if (atomicCompareExchangeWeak(&{element}, {old}, bitcast<u32>({made})).exchanged) {{ break; }}")
