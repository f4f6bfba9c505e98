"""Metal Shading Language's words for threads, their memories and barriers, and how it writes numbers.

for b in bound(0, n, thread="blockIdx.x"):           const int64_t b = (int64_t)weft_block.x;
    S = alloc("shared", f32[256])                    threadgroup float S[256];
    for t in bound(0, 256, thread="threadIdx.x"):    const int64_t t = (int64_t)weft_thread.x;
        S[t] = ...                             ->    S[t] = ...;
        call("weft.barrier")                         threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
"""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.c_family import c_types
from weft.codegen.c_family.dialect import C_KEYWORDS, CXX_KEYWORDS, Dialect
from weft.codegen.c_family.thread_statements import SHUFFLES, UPDATES, ThreadWords, products, thread_statements
from weft.ir import Value
from weft.loop import BARRIER, WARP_BARRIER
from weft.support.dtypes import DType
from weft.targets import Sight, sight_of

BLOCK, THREAD = "weft_block", "weft_thread"
"""The parameters of a kernel that have the numbers of a block and of a thread in it."""

_SPACES: Final = {Sight.GRID: "device ", Sight.BLOCK: "threadgroup ", Sight.THREAD: "thread "}
_NUMBERS: Final = {"blockIdx": BLOCK, "threadIdx": THREAD}
_KEYWORDS: Final = """
kernel vertex fragment visible device constant thread threadgroup threadgroup_imageblock ray_data object_data half bfloat
uint uchar ushort ulong size_t ptrdiff_t metal precise fast sampler simdgroup tensor as_type mem_flags uint3
"""


def address_space(scope: str) -> str:
    """Returns the words for the memory of a scope, such as `device `."""
    return _SPACES[sight_of(scope)]


def literal(value: Value, dtype: DType) -> str:
    """Returns a scalar constant: floats in decimal, and integers of 64 bits, which are `long`, with its suffix."""
    if dtype.is_float and dtype.bits == 32 and math.isfinite(float(value)):
        return c_types.decimal_f32(float(value))
    return c_types.literal(value, dtype, "l")


WORDS: Final = ThreadWords(
    number=lambda kind, axis: f"{_NUMBERS[kind]}.{axis}",
    shared=_SPACES[Sight.BLOCK],
    barriers={
        BARRIER: "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup)",
        WARP_BARRIER: "simdgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup)",
    },
    calls={**products(THREAD), **SHUFFLES, **UPDATES},
)
METAL: Final = Dialect(
    name="Metal Shading Language",
    statements=thread_statements(WORDS),
    address_space=address_space,
    square_roots={32: "precise::sqrt"},
    literal=literal,
    keywords=frozenset((C_KEYWORDS + CXX_KEYWORDS + _KEYWORDS).split()),
)
"""Version 2.4, which is that of macOS 12 and iOS 15."""
