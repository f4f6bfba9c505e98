"""Instructions on the tile registers of x86 (AMX), which LLVM takes by number.

Sums are in the registers `SUM_TILES`, by their place in the buffer of the scope "tile". The factors of a product are loaded into
two registers each, and loaded again only where they are others, or may have changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.llvm.core.affine_operands import Affine
from weft.codegen.llvm.core.emitter import Emitter
from weft.codegen.llvm.memory.addresses import flat_index, memory_of, remember
from weft.ir import Const, Expr
from weft.loop import Address, Call
from weft.support.dtypes import DType, bf16, i8
from weft.targets.instructions import (
    CONFIGURE,
    LEFT_TILES,
    MOST_ROWS,
    RELEASE,
    RIGHT_TILES,
    ROW_BYTES,
    SUM_TILES,
    TILE_LANES,
    TILE_OPERATIONS,
    TileOperation,
)

_PALETTE_BYTES = 64
_COLUMNS_AT, _ROWS_AT = 16, 48


def is_tile_call(s: Call) -> bool:
    """Tells whether *s* is an instruction on tile registers."""
    return s.callee in TILE_OPERATIONS or s.callee in (CONFIGURE, RELEASE)


def tile_call(f: Emitter, s: Call) -> None:
    """Emits an instruction on tile registers; raises `LoweringError` for sums that are in none."""
    with f.scope():
        if s.callee == CONFIGURE:
            _intrinsic(f, "ldtilecfg", "ptr", f"ptr {_palette(f, _constant(f, s.args[0]))}")
            f.tiles.clear()  # the tile registers lose their contents
        elif s.callee == RELEASE:
            _intrinsic(f, "tilerelease", "", "")
        else:
            _operation(f, TILE_OPERATIONS[s.callee], s.args)


def _operation(f: Emitter, o: TileOperation, args: Sequence[Expr]) -> None:
    if o.kind == "zero":
        c, stride = args
        _intrinsic(f, "tilezero", "i8", f"i8 {_sum_tile(f, o, c, stride)}")
    elif o.kind == "store":
        to, c, to_stride, stride = args
        assert isinstance(to, Address)
        given = f"i8 {_sum_tile(f, o, c, stride)}, ptr {f.text(to)}, i64 {_bytes(f, to, to_stride)}"
        _intrinsic(f, "tilestored64", "i8, ptr, i64", given)
        f.build.forget_loads(memory_of(f, to.buffer).root)
    else:
        c, a, b, stride, a_stride, b_stride = args
        tile = _sum_tile(f, o, c, stride)
        left, right = _loaded(f, a, a_stride, LEFT_TILES), _loaded(f, b, b_stride, RIGHT_TILES)
        _intrinsic(f, _product(o.a, o.b), "i8, i8, i8", f"i8 {tile}, i8 {left}, i8 {right}")


def _product(a: DType | None, b: DType | None) -> str:
    """Returns LLVM's name of a product of elements *a* and *b*."""
    if a is bf16:
        return "tdpbf16ps"
    return f"tdpb{'s' if a is i8 else 'u'}{'s' if b is i8 else 'u'}d"


def _sum_tile(f: Emitter, o: TileOperation, c: Expr, stride: Expr) -> int:
    """Returns the register of the sums at *c*, whose buffer has tile after tile."""
    assert isinstance(c, Address)
    place = flat_index(f, c.buffer, c.indices)
    known = isinstance(place, Affine) and place.is_constant and _constant(f, stride) == TILE_LANES
    number = place.constant // (o.rows * TILE_LANES) if known and isinstance(place, Affine) else len(SUM_TILES)
    if number >= len(SUM_TILES):
        hint = f"lay {c.buffer.name} out tile by tile, and use at most {len(SUM_TILES)} tiles at once"
        raise f.error(f"{c.buffer.name} has sums in no tile register", hint=hint)
    return SUM_TILES[number]


def _loaded(f: Emitter, address: Expr, stride: Expr, registers: Sequence[int]) -> int:
    """Returns which of *registers* has the tile at *address*, loading it unless it is there."""
    assert isinstance(address, Address)
    memory = memory_of(f, address.buffer)
    place = f"ptr {f.text(address)}, i64 {_bytes(f, address, stride)}"
    key = f"tile {place}"
    known = f.build.regions[-1].loads.get(memory.root, {}).get(key)
    found = next((n for n in registers if known == str(n) and f.tiles.get(n) == key), None)
    number = next(n for n in f.tiles if n in registers) if found is None and set(registers) <= set(f.tiles) else found
    if number is None:
        number = next(n for n in registers if n not in f.tiles)
    if found is None:
        _intrinsic(f, "tileloadd64", "i8, ptr, i64", f"i8 {number}, {place}")
        remember(f, memory, key, str(number))
    f.tiles.pop(number, None)
    f.tiles[number] = key  # the last in order is the one used last
    return number


def _bytes(f: Emitter, address: Address, stride: Expr) -> str:
    """Returns a distance of rows in bytes."""
    return f.build.scalar(f.index(stride).times(address.buffer.dtype.bytes))


def _constant(f: Emitter, e: Expr) -> int:
    if not isinstance(e, Const):
        raise f.error(f"tiles have rows `{e}` apart, which is not known", hint="give their buffer constant sizes")
    return int(e.value)


def _palette(f: Emitter, rows: int) -> str:
    """Returns a configuration of all registers, as constant memory: how many bytes a row has, and how many rows there are."""
    made = bytearray(_PALETTE_BYTES)
    made[0] = 1
    for n in (*SUM_TILES, *LEFT_TILES, *RIGHT_TILES):
        made[_COLUMNS_AT + 2 * n] = ROW_BYTES
        made[_ROWS_AT + n] = MOST_ROWS if n in RIGHT_TILES else rows
    symbol, text = f"@tiles.{rows}", "".join([f"\\{x:02X}" for x in made])
    f.globals[symbol] = f'{symbol} = internal constant [{_PALETTE_BYTES} x i8] c"{text}", align 64'
    return symbol


def _intrinsic(f: Emitter, name: str, types: str, given: str) -> None:
    symbol = f"@llvm.x86.{name}"
    f.globals[symbol] = f"declare void {symbol}({', '.join([_immediate(t) for t in types.split(', ')])})"
    f.build.do(f"call void {symbol}({given})")


def _immediate(kind: str) -> str:
    return f"{kind} immarg" if kind == "i8" else kind
