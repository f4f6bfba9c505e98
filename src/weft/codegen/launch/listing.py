"""Lists the bytes of a host program for people to read: one line an instruction, with where it is in the bytes."""

from __future__ import annotations

from collections.abc import Iterator

from weft.codegen.launch.instruction_set import HEAD, MAGIC, OPERANDS, Op


def list_launch(data: bytes) -> str:
    """Returns the instructions of well-formed bytes as text; raises `ValueError` for bytes that are none."""
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError("these bytes are no host program")
    _, _, _, inputs, outputs, locals_, slots, callees, plan_at, main_at = HEAD.unpack_from(data)
    head = f"{inputs} inputs, {outputs} outputs, {locals_} locals, {slots} slots, {callees} callees, {len(data)} bytes"
    parts = [("plan", plan_at, main_at), ("main", main_at, len(data))]
    lines = [line for name, begin, end in parts for line in (f"{name}:", *_lines(data, begin, end))]
    return "\n".join([head, *lines]) + "\n"


def _lines(data: bytes, at: int, end: int) -> Iterator[str]:
    while at < end:
        start, op = at, Op(data[at])
        at += 1
        operands = []
        for _ in range(OPERANDS.get(op, 0)):
            n, at = _number(data, at, is_signed=op is Op.CONST)
            operands.append(n)
        if op in (Op.SKIP, Op.SKIP_ZERO, Op.BACK):
            operands = [at - operands[0] if op is Op.BACK else at + operands[0]]
        yield " ".join([f"{start:6}  {op.name}", *map(str, operands)])


def _number(data: bytes, at: int, *, is_signed: bool) -> tuple[int, int]:
    """Returns the LEB128 number at *at*, and where the next thing is."""
    made, shift = 0, 0
    while True:
        byte = data[at]
        made |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return made - (1 << shift) if is_signed and byte & 64 else made, at
