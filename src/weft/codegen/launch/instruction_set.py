"""The instructions of host programs as bytes: one byte each, then operands as LEB128 numbers.

`native/launch/launch.h` documents each instruction. Values are on a stack of i64 and in locals, buffers in slots.
"""

from __future__ import annotations

import struct
from enum import IntEnum, auto
from typing import Final

MAGIC: Final = b"WFLP"
VERSION: Final = 3

HEAD: Final = struct.Struct("<4s9I")
"""The header of the bytes: `MAGIC`, `VERSION`, their size, the numbers of inputs, outputs, locals, slots and callees, and where
the code of `plan` and of `main` begins."""


class Op(IntEnum):
    """An instruction; the comment is its operands."""

    END = 0
    CONST = auto()  # value
    GET = auto()  # local
    SET = auto()  # local
    ADD = auto()
    SUB = auto()
    MUL = auto()
    FLOORDIV = auto()
    FLOORMOD = auto()
    TRUNCDIV = auto()
    TRUNCMOD = auto()
    MIN = auto()
    MAX = auto()
    AND = auto()
    OR = auto()
    XOR = auto()
    SHL = auto()
    SHR = auto()
    LT = auto()
    LE = auto()
    EQ = auto()
    NE = auto()
    CAST = auto()  # type
    SKIP = auto()  # bytes
    SKIP_ZERO = auto()  # bytes
    BACK = auto()  # bytes
    BIND = auto()  # slot, word, number
    SIZE = auto()  # word, number, dimension
    CONTEXT = auto()  # which
    LOAD = auto()  # slot, type
    STORE = auto()  # slot, type
    VIEW = auto()  # slot, source
    ALLOC = auto()  # slot, space
    FREE = auto()
    COPY = auto()  # slot, source
    BUFFER = auto()  # slot
    VALUE = auto()
    CALL = auto()  # callee
    LAUNCH = auto()  # callee
    FAIL = auto()  # number, count
    OUTPUT = auto()  # slot, number, rank
    KEEP = auto()  # slot, number
    TWIN = auto()  # slot, space, source


class Word(IntEnum):
    """The memory that an argument of an entry is in."""

    IN = 0
    OUT = 1
    IN_SHAPE = 2
    OUT_SHAPE = 3
    ARENA = 4
    CONSTANTS = 5
    OUTSIDE = 6
    ARENA_NEEDED = 7


CONTEXT: Final = {"threads": 0, "arena_bytes": 1}
"""The numbers of the context that entries take."""

OPERANDS: Final[dict[Op, int]] = {
    **dict.fromkeys((Op.GET, Op.SET, Op.CAST, Op.SKIP, Op.SKIP_ZERO, Op.BACK, Op.CONTEXT), 1),
    **dict.fromkeys((Op.CONST, Op.BUFFER, Op.CALL, Op.LAUNCH), 1),
    **dict.fromkeys((Op.LOAD, Op.STORE, Op.VIEW, Op.ALLOC, Op.COPY, Op.FAIL, Op.KEEP), 2),
    **dict.fromkeys((Op.BIND, Op.SIZE, Op.OUTPUT, Op.TWIN), 3),
}
"""How many operands an instruction has, if any; that of `CONST` has a sign."""


def unsigned(n: int) -> bytes:
    """Returns a number that is not negative as unsigned LEB128."""
    made = bytearray()
    while n > 127:
        made.append(n & 127 | 128)
        n >>= 7
    return bytes([*made, n])


def signed(n: int) -> bytes:
    """Returns a number as signed LEB128."""
    made = bytearray()
    while not -64 <= n < 64:
        made.append(n & 127 | 128)
        n >>= 7
    return bytes([*made, n & 127])


def instruction(op: Op, *operands: int) -> bytes:
    """Returns an instruction with its operands."""
    write = signed if op is Op.CONST else unsigned
    return bytes([op]) + b"".join([write(n) for n in operands])
