"""The binary interface between generated code and the runtime: the context, the status codes, the tensor descriptor."""

from __future__ import annotations

import zlib
from typing import Final

from weft.support.alignment import ALIGNMENT as ALIGNMENT  # of scratch memory, of the arena and of the frame's arrays

PARALLEL_FOR: Final = 0
"""Offset in the context of `i32 (ctx, i32 (ctx, args, begin, end) task, args, i64 n)`."""
ARENA: Final = 8
ARENA_BYTES: Final = 16
CONSTANTS: Final = 24
ALLOC: Final = 32
"""Offset of `ptr (ctx, i64 bytes)`: scratch memory, aligned to 64 bytes, last in first out; null if there is none left."""
FREE: Final = 40
THREADS: Final = 48
FAILED_ASSERT: Final = 52
DETAIL: Final = 56
DETAILS: Final = 4
ARENA_NEEDED: Final = 88
OUTSIDE: Final = 96
"""Offset of an i32 that generated code sets where a watched number is outside of its limits, and that `main` clears."""
OUTPUT: Final = 104
"""Offset of `ptr (ctx, i64 number, ptr sizes)`: memory for an output of these i64 sizes; null if there is none left."""
KEEP: Final = 112
"""Offset of `ptr (ctx, i64 number, i64 bytes)`: the kept memory of that number, grown to so many bytes; null likewise."""
HOST: Final = 120
"""Offset of `i32 (ctx, i32 number, ptr args)`: runs a host operator (`loop.intrinsics`) on i64 arguments."""

OK: Final = 0
ASSERT_FAILED: Final = 1
OUT_OF_MEMORY: Final = 2

TENSOR_BYTES: Final = 24
TENSOR_SHAPE: Final = 8
"""Offset in a tensor descriptor {data, shape, i32 ndim, i32 dtype} of the pointer to its i64 sizes."""


def assert_id(message: str) -> int:
    """Returns the number by which a failed assertion is reported: positive, the same in every module."""
    return zlib.crc32(message.encode()) & 0x7FFFFFFF or 1
