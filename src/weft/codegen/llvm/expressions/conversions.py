"""Conversions between types, and the 16-bit floats, whose arithmetic is done in f32."""

from __future__ import annotations

from weft.codegen.llvm.core.affine_operands import Affine, Operand
from weft.codegen.llvm.core.emitter import Emitter, emits
from weft.codegen.llvm.core.ir_types import filled, is_half, register_type, splat
from weft.ir import INDEX, Cast, Reinterpret
from weft.support.dtypes import DType, bool_, f32, i32


def widened(dtype: DType) -> DType:
    """Returns the type that floats of *dtype* are computed in."""
    return f32.with_lanes(dtype.lanes) if is_half(dtype) else dtype


def widen(f: Emitter, x: str, dtype: DType) -> str:
    """Returns a 16-bit float as f32, exactly; other values as they are."""
    if not is_half(dtype):
        return x
    if dtype.kind == "float":
        return _widen_f16(f, x, dtype)
    wide, words = register_type(widened(dtype)), register_type(i32.with_lanes(dtype.lanes))
    bits = f.build.pure(f"zext {register_type(dtype)} {x} to {words}", x)
    high = f.build.pure(f"shl {words} {bits}, {splat('16', dtype_words(dtype))}", bits)
    return f.build.pure(f"bitcast {words} {high} to {wide}", high)


def narrow(f: Emitter, x: str, dtype: DType) -> str:
    """Rounds an f32 to a 16-bit float, to nearest even; values of other types are left as they are."""
    if not is_half(dtype):
        return x
    return _narrow_f16(f, x, dtype) if dtype.kind == "float" else _narrow_bf16(f, x, dtype)


def dtype_words(dtype: DType) -> DType:
    """Returns the i32 type with the lanes of *dtype*."""
    return i32.with_lanes(dtype.lanes)


class _Words:
    """Bit arithmetic on the i32 image of an f32 value, for rounding by hand."""

    def __init__(self, f: Emitter, dtype: DType) -> None:
        self.build = f.build
        self.words = dtype_words(dtype)
        self.kind = register_type(self.words)
        self.flags = register_type(bool_.with_lanes(dtype.lanes))
        self.floats = register_type(f32.with_lanes(dtype.lanes))

    def __call__(self, name: str, x: str, y: str | int) -> str:
        other = splat(str(y), self.words) if isinstance(y, int) else y
        return self.build.pure(f"{name} {self.kind} {x}, {other}", x, other)

    def select(self, cond: str, x: str, y: str | int) -> str:
        other = splat(str(y), self.words) if isinstance(y, int) else y
        return self.build.pure(f"select {self.flags} {cond}, {self.kind} {x}, {self.kind} {other}", cond, x, other)

    def bits(self, x: str) -> str:
        return self.build.pure(f"bitcast {self.floats} {x} to {self.kind}", x)

    def value(self, x: str) -> str:
        return self.build.pure(f"bitcast {self.kind} {x} to {self.floats}", x)

    def float(self, name: str, x: str, number: float) -> str:
        y = filled(number, f32.with_lanes(self.words.lanes))
        return self.build.pure(f"{name} {self.floats} {x}, {y}", x)

    def truncated(self, x: str, dtype: DType) -> str:
        return self.build.pure(f"trunc {self.kind} {x} to {register_type(dtype)}", x)


def _narrow_bf16(f: Emitter, x: str, dtype: DType) -> str:
    """Adds half a unit in the last place, less one where the result would be odd; a NaN keeps its sign and goes quiet."""
    w = _Words(f, dtype)
    bits = w.bits(x)
    odd = w("and", w("lshr", bits, 16), 1)
    rounded = w("lshr", w("add", w("add", bits, 0x7FFF), odd), 16)
    nan = w.float("fcmp uno", x, 0.0)
    return w.truncated(w.select(nan, w("or", w("lshr", bits, 16), 0x40), rounded), dtype)


def _widen_f16(f: Emitter, x: str, dtype: DType) -> str:
    if f.target.has("f16c"):
        half, wide = _half(dtype), register_type(widened(dtype))
        value = f.build.pure(f"bitcast {register_type(dtype)} {x} to {half}", x)
        return f.build.pure(f"fpext {half} {value} to {wide}", value)
    w = _Words(f, dtype)
    bits = f.build.pure(f"zext {register_type(dtype)} {x} to {w.kind}", x)
    # the exponent and fraction moved into place are the value times 2^-112, denormals included; infinities and NaN apart
    shifted = w("shl", w("and", bits, 0x7FFF), 13)
    scaled = w.bits(w.float("fmul", w.value(shifted), 2.0**112))
    special = w("icmp uge", shifted, 0x7C00 << 13)
    magnitude = w.select(special, w("or", shifted, 0x7F800000), scaled)
    return w.value(w("or", magnitude, w("shl", w("and", bits, 0x8000), 16)))


def _half(dtype: DType) -> str:
    return "half" if dtype.lanes == 1 else f"<{dtype.lanes} x half>"


def _narrow_f16(f: Emitter, x: str, dtype: DType) -> str:
    if f.target.has("f16c"):
        half = _half(dtype)
        value = f.build.pure(f"fptrunc {register_type(widened(dtype))} {x} to {half}", x)
        return f.build.pure(f"bitcast {half} {value} to {register_type(dtype)}", value)
    w = _Words(f, dtype)
    bits = w.bits(x)
    magnitude = w("and", bits, 0x7FFFFFFF)
    # normal results: re-bias the exponent and round half to even in the integer domain
    odd = w("and", w("lshr", magnitude, 13), 1)
    normal = w("lshr", w("add", w("add", magnitude, 0xFFF - (112 << 23)), odd), 13)
    # results below 2^-14: adding 0.5 makes the float unit round to multiples of 2^-24
    small = w("sub", w.bits(w.float("fadd", w.value(magnitude), 0.5)), 0x3F000000)
    made = w.select(w("icmp ult", magnitude, 113 << 23), small, normal)
    # 65520 and above round to infinity; NaN keeps the top of its payload
    quiet = w("or", w("and", w("lshr", magnitude, 13), 0x3FF), 0x7E00)
    nan = w("icmp ugt", magnitude, 0x7F800000)
    infinite = w("icmp uge", magnitude, 0x477FF000)
    made = w.select(nan, quiet, w.select(infinite, splat(str(0x7C00), w.words), made))
    return w.truncated(w("or", made, w("lshr", w("and", bits, -0x80000000), 16)), dtype)


@emits(Cast)
def cast(f: Emitter, e: Cast, a: Operand) -> Operand:
    """Emits a conversion."""
    if e.a.dtype is e.dtype:
        return a
    made = convert(f, f.build.text(a), e.a.dtype, e.dtype)
    if e.dtype is not INDEX:
        return made
    if e.a.dtype.kind in ("uint", "bool") and e.a.dtype.bits < 64:
        f.build.nonnegative.add(made)
    return Affine(0, {made: 1}) if made[0] == "%" else Affine(int(made))


def convert(f: Emitter, x: str, source: DType, to: DType) -> str:
    """Returns *x* of type *source* as a value of type *to*."""
    if to.is_bool:
        return _to_bool(f, x, source)
    if source.is_float and to.is_float:
        return _between_floats(f, x, source, to)
    if to.is_float:
        wide = widened(to)
        name = "sitofp" if source.kind == "int" else "uitofp"
        return narrow(f, _convert(f, name, x, source, wide), to)
    if source.is_float:
        return _to_int(f, widen(f, x, source), widened(source), to)
    if to.bits == source.bits:
        return x
    name = "trunc" if to.bits < source.bits else "sext" if source.kind == "int" else "zext"
    return _convert(f, name, x, source, to)


def _convert(f: Emitter, name: str, x: str, source: DType, to: DType) -> str:
    return f.build.pure(f"{name} {register_type(source)} {x} to {register_type(to)}", x)


def _to_bool(f: Emitter, x: str, source: DType) -> str:
    if source.is_bool:
        return x
    kind = register_type(widened(source))
    if source.is_float:
        x = widen(f, x, source)
        return f.build.pure(f"fcmp une {kind} {x}, {filled(0.0, widened(source))}", x)
    return f.build.pure(f"icmp ne {kind} {x}, {splat('0', source)}", x)


def _to_int(f: Emitter, x: str, source: DType, to: DType) -> str:
    """Emits the conversion towards zero; through i32 for narrow types, so that a wrapped value is the same as NumPy's."""
    if to.bits >= 32:
        return _convert(f, "fptosi" if to.kind == "int" else "fptoui", x, source, to)
    words = dtype_words(to)
    return _convert(f, "trunc", _convert(f, "fptosi", x, source, words), words, to)


def _between_floats(f: Emitter, x: str, source: DType, to: DType) -> str:
    x, source = widen(f, x, source), widened(source)
    if to.bits == 64:
        return x if source.bits == 64 else _convert(f, "fpext", x, source, to)
    single = f32.with_lanes(to.lanes)
    if source.bits == 64:
        x = (
            _round_to_odd(f, x, source)
            if to.kind == "float" and to.bits == 16
            else _convert(f, "fptrunc", x, source, single)
        )
    return narrow(f, x, to)


def _round_to_odd(f: Emitter, x: str, source: DType) -> str:
    """Returns an f64 as f32 with a sticky last bit, so that rounding once more to f16 is as if rounded once.

    Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.
    """
    single = f32.with_lanes(source.lanes)
    near = _convert(f, "fptrunc", x, source, single)
    back = _convert(f, "fpext", near, single, source)
    w = _Words(f, single)
    kind = register_type(source)
    reached, exact = f.intrinsic("fabs", source, back), f.intrinsic("fabs", source, x)
    over = f.build.pure(f"fcmp ogt {kind} {reached}, {exact}", reached, exact)
    inexact = f.build.pure(f"fcmp one {kind} {back}, {x}", back, x)
    bits = w.bits(near)
    down = f.build.pure(f"sext {w.flags} {over} to {w.kind}", over)
    truncated = w("add", bits, down)
    return w.value(w.select(inexact, w("or", truncated, 1), bits))


@emits(Reinterpret)
def reinterpret(f: Emitter, e: Reinterpret, a: Operand) -> Operand:
    """Emits the same bits as another type."""
    x, source, to = f.build.text(a), register_type(e.a.dtype), register_type(e.dtype)
    if source == to:
        made = x
    else:
        made = f.build.pure(f"bitcast {source} {x} to {to}", x)
    return Affine(0, {made: 1}) if e.dtype is INDEX and made[0] == "%" else made
