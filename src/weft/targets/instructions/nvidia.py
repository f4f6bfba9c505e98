"""Products of matrices by groups of four warps together (tensor cores of sm_90): of 16 bits, bytes, and tf32.

    C[64, n] += A[64, 16] * B[16, n]            `wgmma.mma_async.sync.aligned.m64nNk16`
    C[64, n] += A[64, 32] * B[32, n]            `wgmma.mma_async.sync.aligned.m64nNk32`, of bytes
    C[64, n] += A[64, 8] * B[8, n]              `wgmma.mma_async.sync.aligned.m64nNk8`, of the bits of tf32

Each warp has 16 rows, and in its threads sums lie as in products by single warps (`warp_products`), 8 columns after 8 columns
("Parallel Thread Execution ISA" 8.0, section 9.7.15). So a thread is declared to compute the same 2 x 2 sums; those of
neighbouring columns, which a loop around them goes through, are one instruction where code is made (`codegen.cuda.warpgroups`).
It reads the factors from swizzled memory by itself, of bytes and tf32 only where the terms of each row, and of each column, lie
side by side; or the left one of 16 bits from registers of the warps, where it lies as sums do (the memory scope `fragment`).
"""

from __future__ import annotations

from typing import Final

from weft.support.dtypes import bf16, f16, i8, u32
from weft.targets.instructions.warp_products import declared

GROUP_INSTRUCTIONS: Final = {
    f16: "cuda.wgmma_f16",
    bf16: "cuda.wgmma_bf16",
    i8: "cuda.wgmma_i8",
    u32: "cuda.wgmma_tf32",
}
"""The instructions of groups of four warps."""

REGISTER_GROUP_INSTRUCTIONS: Final = {f16: "cuda.wgmma_registers_f16", bf16: "cuda.wgmma_registers_bf16"}
"""The same, whose left factor is in registers of the warps (the memory scope `fragment`)."""

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

NVIDIA: Final = (
    *declared(GROUP_INSTRUCTIONS, "swizzled", "swizzled", "wgmma"),
    *declared(REGISTER_GROUP_INSTRUCTIONS, "fragment", "swizzled", "wgmma"),
)
