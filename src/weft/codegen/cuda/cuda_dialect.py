"""The CUDA C++ dialect: thread indices, memory spaces, barriers, and helpers in inline PTX.

The instructions are those of PTX ("Parallel Thread Execution ISA", 8.0), which every GPU from sm_80 on has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.codegen.c_family.atomic_helpers import WORDS_OF_32, WORDS_OF_64, native_updates, swaps
from weft.codegen.c_family.dialect import C_KEYWORDS, CXX_KEYWORDS, Dialect
from weft.codegen.c_family.thread_statements import SHUFFLES, UPDATES, ThreadWords, products, thread_statements
from weft.codegen.c_family.vector_words import MemoryVectors
from weft.codegen.cuda.async_copies import COPIES, COPY_HELPERS, DYNAMIC_SCOPE, SWIZZLED_SCOPE, piece, write_dynamic
from weft.codegen.cuda.dependent_launches import LAUNCH_HELPERS
from weft.codegen.cuda.fragments import FRAGMENT_HELPERS
from weft.codegen.cuda.group_products import GROUP_HELPERS, GROUP_PRODUCTS
from weft.loop import BARRIER, WARP_BARRIER

WORDS: Final = ThreadWords(
    number=lambda kind, axis: f"{kind}.{axis}",
    shared="__shared__ __align__(16) ",
    barriers={BARRIER: "__syncthreads()", WARP_BARRIER: "__syncwarp()"},
    calls={**products(), **GROUP_PRODUCTS, **COPIES, **SHUFFLES, **UPDATES},
    dynamic={SWIZZLED_SCOPE: write_dynamic, DYNAMIC_SCOPE: write_dynamic},
)
_VECTORS: Final = "".join([f" {kind}{n} make_{kind}{n}" for kind in ("float", "int", "uint") for n in (2, 4)])

CUDA: Final = Dialect(
    name="CUDA C++",
    statements=thread_statements(WORDS),
    address_space=lambda scope: "",
    square_roots={32: "sqrtf", 64: "sqrt"},
    keywords=frozenset((C_KEYWORDS + CXX_KEYWORDS + _VECTORS).split()),
    piece=piece,
    memory_vectors=MemoryVectors(
        type_name=lambda dtype: f"{dtype.element.numpy.name.removesuffix('32')}{dtype.lanes}",
        made=lambda kind, lanes: f"make_{kind}({', '.join(lanes)})",
    ),
)


def _asm(name: str, instruction: str, result: tuple[str, str], *given: tuple[str, str]) -> str:
    """Returns a helper of one instruction; results and arguments are types of C with the letters of PTX's registers."""
    params = ", ".join([f"{kind} x{n}" for n, (kind, _) in enumerate(given)])
    places = ", ".join([f"%{n}" for n in range(len(given) + 1)])
    read = ", ".join([f'"{letter}"(x{n})' for n, (_, letter) in enumerate(given)])
    code = f'asm("{instruction} {places};" : "={result[1]}"(y) : {read});'
    return f"static inline {result[0]} weft_{name}({params}) {{ {result[0]} y; {code} return y; }}"


_FLOAT, _HALF = ("float", "f"), ("uint16_t", "h")
_INTEGERS: Final = {"i32": "int32_t", "u32": "uint32_t", "i64": "int64_t", "u64": "uint64_t"}
_FUNCTIONS: Final = {
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round_even": "rint",
    "exp": "exp",
    "exp2": "exp2",
    "exp_flushed": "exp",
}

_SWAP: Final = "const WORD seen = atomicCAS(place, *old, made), before = *old; *old = seen; return seen == before;"
_UPDATES: Final = {
    **{("add", t): f"atomicAdd(({kind} *)place, x);" for t, kind in (("f32", "float"), ("f64", "double"))},
    **{("add", t): "atomicAdd(place, x);" for t in ("u32", "u64")},
    **{(k, t): f"atomic{k.title()}(({t_} *)place, x);" for k in ("min", "max") for t, t_ in _INTEGERS.items()},
}
UPDATE_HELPERS: Final = {**swaps(_SWAP, {**WORDS_OF_32, **WORDS_OF_64}), **native_updates(_UPDATES)}
"""The helpers of atomic updates, by the machine's instructions where it has them."""

OWN_HELPERS: Final[Mapping[str, str]] = {
    **FRAGMENT_HELPERS,
    **GROUP_HELPERS,
    **COPY_HELPERS,
    **LAUNCH_HELPERS,
    **UPDATE_HELPERS,
    "min_f32": _asm("min_f32", "min.NaN.f32", _FLOAT, _FLOAT, _FLOAT),
    "max_f32": _asm("max_f32", "max.NaN.f32", _FLOAT, _FLOAT, _FLOAT),
    "max_number_f32": "static inline float weft_max_number_f32(float x, float y) { return fmaxf(x, y); }",
    "max_number_f64": "static inline double weft_max_number_f64(double x, double y) { return fmax(x, y); }",
    "exp2_flushed_f32": _asm("exp2_flushed_f32", "ex2.approx.ftz.f32", _FLOAT, _FLOAT),
    "from_f16": _asm("from_f16", "cvt.f32.f16", _FLOAT, _HALF),
    "to_f16": _asm("to_f16", "cvt.rn.f16.f32", _HALF, _FLOAT),
    "round_tf32_f32": """static inline float weft_round_tf32_f32(float x) {
  uint32_t bits; asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x)); return __uint_as_float(bits);
}""",
    "to_bf16": _asm("to_bf16", "cvt.rn.bf16.f32", _HALF, _FLOAT),
    **{f"{k}_f32": f"static inline float weft_{k}_f32(float x) {{ return {v}f(x); }}" for k, v in _FUNCTIONS.items()},
    **{f"{k}_f64": f"static inline double weft_{k}_f64(double x) {{ return {v}(x); }}" for k, v in _FUNCTIONS.items()},
}
"""The helpers by name, see `c_family.helpers`. `min.NaN` and `max.NaN` return NaN where either argument is one."""
