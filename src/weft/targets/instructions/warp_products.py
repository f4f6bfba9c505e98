"""Products of matrices by the threads of a warp together: of floats, of 16 or 32 bits, or rounded to tf32.

    C[16, 8] += A[16, 16] * B[16, 8]            of 16 bits
    C[16, 8] += A[16, 8] * B[8, 8]              of 32 bits, or of the bits of tf32

The elements of the sums lie in registers of all 32 threads. Rows may be given to an instruction in any order, so that of each
machine's a thread has, and is declared to compute, 2 x 2 neighbours:

    C[2 * g + half, 2 * t + pair] is register [half, pair] of thread (g, t), with g below 8 and t below 4

On NVIDIA's GPUs these are `mma.sync.aligned.m16n8k16` and `m16n8k8`, in which thread 4 * g + t has rows g and g + 8, and columns
2 * t and 2 * t + 1 ("Parallel Thread Execution ISA" 8.0, section 9.7.14.5.8): as row g it gets row 2 * g of the matrix, and as
row g + 8 row 2 * g + 1. On Apple's they are products of 8 x 8 by `simdgroup_multiply_accumulate`, one for each half; which of the
threads is (g, t) is told in `codegen.metal.simdgroup_products`.

A program says by its loops over threads where each sum lies, and means the same when it is run thread by thread. The other
requirements of an instruction are checked where code is generated (`codegen.c_family.check_fragments`): all threads of a warp are
there, each with the rows of its g and the columns of its t. The factors are read from shared memory, each thread the part of them
that the instruction takes from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from weft.support.dtypes import DType, bf16, f16, f32, i8, i32, u32
from weft.targets.instructions.tensor_intrinsic import TensorIntrinsic


@dataclass(frozen=True)
class Fragment:
    """How the sums of a product, of *depth* terms of 16 bits, lie in a warp: rows by groups of threads, of quads each.

    A thread has two *halves*, rows, by a *pair* of columns.
    """

    halves: int = 2
    groups: int = 8
    quads: int = 4
    pairs: int = 2
    depth: int = 16

    @property
    def rows(self) -> int:
        """The rows of the sums."""
        return self.halves * self.groups

    @property
    def columns(self) -> int:
        """The columns of the sums."""
        return self.quads * self.pairs

    @property
    def threads(self) -> int:
        """The threads that have them."""
        return self.groups * self.quads

    def place(self, row: int, column: int) -> tuple[int, int, int]:
        """Returns where a sum lies: the thread of the warp, and its register's half and pair."""
        return row // self.halves * self.quads + column // self.pairs, row % self.halves, column % self.pairs


FRAGMENT: Final = Fragment()
FRAGMENT_INSTRUCTIONS: Final = {
    f16: "warp.mma_f16",
    bf16: "warp.mma_bf16",
    u32: "warp.mma_tf32",
    f32: "warp.mma_f32",
}
"""The instructions by the type of their factors; those of tf32 are bits (`ops.dot_products.rounded_factors`).

The feature of a target that has one is the name after the point.
"""

PRODUCT_BYTES: Final = 32
"""The bytes of the terms of a row that a product of a group takes."""

TF32_BITS: Final = (1 << 32) - (1 << 13)
"""The bits of float32 that tf32 has: the instructions take no others."""

_PARAMETERS: Final = (
    'C: buffer("global", {s}[2, 2], strides=(tc, 1)), A: buffer("{left}", {t}[2, {k}], strides=(ta, ua)),'
    ' B: buffer("{right}", {t}[{k}, 2], strides=(tb, ub)), tc: i64, ta: i64, ua: i64, tb: i64, ub: i64'
)
_TEXT: Final = f"""
def semantics({_PARAMETERS}):
    for i in range(0, 2):
        for j in range(0, 2):
            for k in range(0, {{k}}):
                with block("multiply", vi=spatial(2, i), vj=spatial(2, j), vk=reduce({{k}}, k)):
                    C[vi, vj] = C[vi, vj] + {{a}} * {{b}}

def implementation({_PARAMETERS}):
    call("{{name}}", C.at(0, 0), A.at(0, 0), B.at(0, 0), tc, ta, ua, tb, ub)
"""


def sums_of(dtype: DType) -> DType:
    """Returns the type of the sums of products of factors of a type."""
    return i32 if dtype is i8 else f32


def terms_of(dtype: DType) -> int:
    """Returns the terms of a product of factors of a type."""
    return PRODUCT_BYTES // dtype.bytes


def declared(names: Mapping[DType, str], left: str, right: str, feature: str = "") -> tuple[TensorIntrinsic, ...]:
    """Returns products by their names, with factors in two memories, of the machines that have a *feature* or that of a name."""

    def of(name: str, dtype: DType) -> TensorIntrinsic:
        return TensorIntrinsic(name, _text(name, dtype, left, right), (feature or name.partition(".")[2],))

    return tuple([of(name, dtype) for dtype, name in names.items()])


def _text(name: str, dtype: DType, left: str, right: str) -> str:
    sums = sums_of(dtype)
    factor = "{}" if dtype is sums else f"{sums}({{}})"
    if dtype is u32:
        factor = f"reinterpret({sums}, {{}} & u32({TF32_BITS}))"
    a, b = factor.format("A[vi, vk]"), factor.format("B[vk, vj]")
    return _TEXT.format(name=name, t=dtype, s=sums, k=terms_of(dtype), left=left, right=right, a=a, b=b)


WARP_PRODUCTS: Final = declared(FRAGMENT_INSTRUCTIONS, "shared", "shared")
