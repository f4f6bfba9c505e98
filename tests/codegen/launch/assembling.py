"""Host programs put together from instructions, of one input and one output, both vectors of i64."""

from __future__ import annotations

import struct
from typing import TypeAlias

import numpy as np

from weft.codegen.launch.instruction_set import VERSION, Op, Word, instruction
from weft.native import _rt
from weft.support.dtypes import i64

Code: TypeAlias = "bytes | tuple[int, ...] | Op"
"""Instructions: an operation without operands, a tuple of one and its operands, or bytes as they are."""

LEAST, MOST = -(2**63), 2**63 - 1


def assembled(
    main: bytes, plan: bytes = b"\0", rows: bytes = b"", callee_count: int = 0, slots: int = 4, local_count: int = 4
) -> bytes:
    """Returns the bytes of a host program of one input and one output that has this code."""
    plan_at = 40 + len(rows)
    sizes = (plan_at + len(plan) + len(main), 1, 1, local_count, slots, callee_count, plan_at, plan_at + len(plan))
    return struct.pack("<4s9I", b"WFLP", VERSION, *sizes) + rows + plan + main


def model(data: bytes, callees: int = 0, constants: bytes = b"") -> _rt.Model:
    """Opens a program of an input and an output, both vectors of i64."""
    image = _rt.Image(b"\xc3" * 64)  # never called
    return _rt.Model(data, [(image, 0)] * callees, constants, [(i64.code, 1)], [(i64.code, 1)], threads=1)


def code(*parts: Code) -> bytes:
    """Returns instructions: an operation without operands, a tuple of one and its operands, or bytes as they are."""
    made = [
        p if isinstance(p, bytes) else instruction(p) if isinstance(p, Op) else instruction(Op(p[0]), *p[1:])
        for p in parts
    ]
    return b"".join(made)


PLAN = code((Op.BIND, 0, Word.OUT_SHAPE, 0), (Op.CONST, 0), (Op.CONST, 1), (Op.STORE, 0, i64.code), Op.END)
"""One output value."""

OUT = (Op.BIND, 0, Word.OUT, 0)


def result(*parts: Code, x: int = 0) -> int:
    """Returns what a main that leaves a value on the stack computes; slot 1 has the input *x*."""
    main = code(OUT, (Op.BIND, 1, Word.IN, 0), (Op.CONST, 0), *parts, (Op.STORE, 0, i64.code), Op.END)
    return int(model(assembled(main, PLAN)).run([np.array([x], np.int64)])[0][0])
