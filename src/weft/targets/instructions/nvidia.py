"""Products of matrices by the threads of a warp together (tensor cores), of 16-bit floats added to sums in float32.

    C[16, 8] += A[16, 16] * B[16, 8]            `mma.sync.aligned.m16n8k16`

The elements of the matrices lie in registers of all 32 threads ("Parallel Thread Execution ISA" 8.0, section 9.7.14.5.8): thread
4 * g + t, with g below 8 and t below 4, has rows g and g + 8 of the sums, and columns 2 * t and 2 * t + 1. Rows may be given to
the instruction in any order; as row g it gets row 2 * g of the matrix, and as row g + 8 row 2 * g + 1. So a thread has, and is
declared to compute, 2 x 2 neighbours:

    C[2 * g + half, 2 * t + pair] is register [half, pair] of thread 4 * g + t

A program says by its loops over threads where each sum lies, and means the same when it is run thread by thread. What the
instruction asks for beyond that is checked where code is made (`codegen.cuda.check_fragments`): all threads of a warp are there,
each with the rows of its g and the columns of its t. The factors are read from shared memory, each thread the part of them that
the instruction takes from it.

    C[64, n] += A[64, 16] * B[16, n]            `wgmma.mma_async.sync.aligned.m64nNk16`

is made by a group of four warps, of 16 rows each, in whose threads sums lie alike, 8 columns after 8 columns (section 9.7.15).
So a thread is declared to compute the same 2 x 2 sums; those of neighbouring columns, which a loop around them goes through, are
one instruction where code is made (`codegen.cuda.warpgroups`). It reads the factors from swizzled memory by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from weft.support.dtypes import DType, bf16, f16
from weft.targets.instructions.tensor_intrinsic import TensorIntrinsic


@dataclass(frozen=True)
class Fragment:
    """How the sums of a product of *depth* terms lie in a warp: rows by groups of threads, in each of which there are quads.

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
FRAGMENT_INSTRUCTIONS: Final = {f16: "cuda.mma_f16", bf16: "cuda.mma_bf16"}
"""The instructions by the type of their factors."""

GROUP_INSTRUCTIONS: Final = {f16: "cuda.wgmma_f16", bf16: "cuda.wgmma_bf16"}
"""Those of groups of four warps."""

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
    'C: buffer("global", f32[2, 2], strides=(tc, 1)), A: buffer("{scope}", {t}[2, 16], strides=(ta, ua)),'
    ' B: buffer("{scope}", {t}[16, 2], strides=(tb, ub)), tc: i64, ta: i64, ua: i64, tb: i64, ub: i64'
)
_TEXT: Final = f"""
def semantics({_PARAMETERS}):
    for i in range(0, 2):
        for j in range(0, 2):
            for k in range(0, 16):
                with block("multiply", vi=spatial(2, i), vj=spatial(2, j), vk=reduce(16, k)):
                    C[vi, vj] = C[vi, vj] + f32(A[vi, vk]) * f32(B[vk, vj])

def implementation({_PARAMETERS}):
    call("{{name}}", C.at(0, 0), A.at(0, 0), B.at(0, 0), tc, ta, ua, tb, ub)
"""


def _declared(names: Mapping[DType, str], scope: str, feature: str) -> tuple[TensorIntrinsic, ...]:
    return tuple(
        [TensorIntrinsic(n, _TEXT.format(name=n, t=dtype, scope=scope), (feature,)) for dtype, n in names.items()]
    )


NVIDIA: Final = (
    *_declared(FRAGMENT_INSTRUCTIONS, "shared", "mma"),
    *_declared(GROUP_INSTRUCTIONS, "swizzled", "wgmma"),
)
