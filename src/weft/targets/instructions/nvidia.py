"""Products of matrices by the threads of a warp together (tensor cores): of floats, rounded to 16 bits or tf32, and of bytes.

    C[16, 8] += A[16, 16] * B[16, 8]            `mma.sync.aligned.m16n8k16`
    C[16, 8] += A[16, 8] * B[8, 8]              `mma.sync.aligned.m16n8k8`, of the bits of tf32

The elements of the matrices lie in registers of all 32 threads ("Parallel Thread Execution ISA" 8.0, section 9.7.14.5.8): thread
4 * g + t, with g below 8 and t below 4, has rows g and g + 8 of the sums, and columns 2 * t and 2 * t + 1. Rows may be given to
the instruction in any order; as row g it gets row 2 * g of the matrix, and as row g + 8 row 2 * g + 1. So a thread has, and is
declared to compute, 2 x 2 neighbours:

    C[2 * g + half, 2 * t + pair] is register [half, pair] of thread 4 * g + t

A program says by its loops over threads where each sum lies, and means the same when it is run thread by thread. The other
requirements of the instruction are checked where code is generated (`codegen.cuda.check_fragments`): all threads of a warp are
there, each with the rows of its g and the columns of its t. The factors are read from shared memory, each thread the part of them
that the instruction takes from it.

    C[64, n] += A[64, 16] * B[16, n]            `wgmma.mma_async.sync.aligned.m64nNk16`
    C[64, n] += A[64, 32] * B[32, n]            `wgmma.mma_async.sync.aligned.m64nNk32`, of bytes
    C[64, n] += A[64, 8] * B[8, n]              `wgmma.mma_async.sync.aligned.m64nNk8`, of the bits of tf32

is made by a group of four warps, of 16 rows each, in whose threads sums lie alike, 8 columns after 8 columns (section 9.7.15).
So a thread is declared to compute the same 2 x 2 sums; those of neighbouring columns, which a loop around them goes through, are
one instruction where code is made (`codegen.cuda.warpgroups`). It reads the factors from swizzled memory by itself, of bytes and
tf32 only where the terms of each row, and of each column, lie side by side; or the left one of 16 bits from registers of the
warps, where it lies as sums do (the memory scope `fragment`).
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
FRAGMENT_INSTRUCTIONS: Final = {f16: "cuda.mma_f16", bf16: "cuda.mma_bf16", u32: "cuda.mma_tf32"}
"""The instructions by the type of their factors; those of tf32 are bits (`ops.dot_products.rounded_factors`)."""

GROUP_INSTRUCTIONS: Final = {
    f16: "cuda.wgmma_f16",
    bf16: "cuda.wgmma_bf16",
    i8: "cuda.wgmma_i8",
    u32: "cuda.wgmma_tf32",
}
"""The instructions of groups of four warps."""

REGISTER_GROUP_INSTRUCTIONS: Final = {f16: "cuda.wgmma_registers_f16", bf16: "cuda.wgmma_registers_bf16"}
"""The same, whose left factor is in registers of the warps (the memory scope `fragment`)."""

PRODUCT_BYTES: Final = 32
"""The bytes of the terms of a row that a product of a group takes."""

TF32_BITS: Final = (1 << 32) - (1 << 13)
"""The bits of float32 that tf32 has: the instructions take no others."""

TURNED: Final = frozenset({f16, bf16})
"""The types of factors that groups take in rows of columns, too."""

ASYNC_COPIES: Final = "async_copy"
"""The feature of a target whose threads go on while memory is copied."""

COPY_BYTES: Final = (4, 8, 16)
"""The bytes that a thread copies to shared memory while it goes on (`cp.async`), from a multiple of them on."""

WARPS_OF_GROUP: Final = 4
SWIZZLED_BYTES: Final = 128
"""The bytes of a row of swizzled memory."""

SWIZZLED_ROWS: Final = 8
"""The rows in which pieces of one number lie in different places."""

GROUP_COLUMNS: Final = (64, 128, 192, 256)
"""The columns of sums that instructions of a group have: those of whole rows of swizzled memory."""

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


def _declared(names: Mapping[DType, str], left: str, right: str, feature: str) -> tuple[TensorIntrinsic, ...]:
    return tuple([TensorIntrinsic(n, _text(n, dtype, left, right), (feature,)) for dtype, n in names.items()])


def _text(name: str, dtype: DType, left: str, right: str) -> str:
    sums = sums_of(dtype)
    factor = f"reinterpret({sums}, {{}} & u32({TF32_BITS}))" if dtype is u32 else f"{sums}({{}})"
    a, b = factor.format("A[vi, vk]"), factor.format("B[vk, vj]")
    return _TEXT.format(name=name, t=dtype, s=sums, k=terms_of(dtype), left=left, right=right, a=a, b=b)


NVIDIA: Final = (
    *_declared(FRAGMENT_INSTRUCTIONS, "shared", "shared", "mma"),
    *_declared(GROUP_INSTRUCTIONS, "swizzled", "swizzled", "wgmma"),
    *_declared(REGISTER_GROUP_INSTRUCTIONS, "fragment", "swizzled", "wgmma"),
)
