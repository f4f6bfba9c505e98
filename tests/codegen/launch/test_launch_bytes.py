"""The bytes of host programs: instructions, numbers, and what is refused when they are opened or replayed."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.codegen.launch.assembling import LEAST, MOST, Code, result
from tests.host_examples import DEVICE, LATE
from tests.runtime.conftest import NATIVE

from weft.codegen.launch import list_launch, write_launch
from weft.codegen.launch.instruction_set import (
    MAGIC,
    OPERANDS,
    VERSION,
    Op,
    Word,
    signed,
    unsigned,
)
from weft.loop import parse_program
from weft.support.dtypes import DType, bool_, i8, i32, i64, u8
from weft.support.errors import LoweringError, VerifyError

HEADER = (NATIVE / "launch" / "launch.h").read_text(encoding="utf-8")


def enumerated(name: str) -> list[str]:
    """Returns the members of an enumeration of the C header, in order."""
    body = re.search(rf"enum {name} {{(.*?)}};", HEADER, re.S)
    assert body is not None
    return re.findall(r"\bWEFT_(\w+),?", re.sub(r"/\*.*?\*/", "", body[1], flags=re.S))


def test_instructions_are_those_of_the_runtime() -> None:
    assert enumerated("weft_op") == [*[f"OP_{op.name}" for op in Op], "OPS"]
    assert enumerated("weft_word") == [w.name for w in Word]
    assert f"#define WEFT_LAUNCH_VERSION {VERSION}\n" in HEADER
    assert f"#define WEFT_LAUNCH_MAGIC 0x{int.from_bytes(MAGIC, 'little'):X}u" in HEADER


@given(st.integers(LEAST, MOST))
def test_numbers_are_read_as_they_are_written(n: int) -> None:
    assert result((Op.CONST, n)) == n


def wrapped(n: int) -> int:
    return (n - LEAST) % 2**64 + LEAST


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


MEANINGS: Final[dict[Op, Callable[[int, int], int]]] = {
    Op.ADD: lambda a, b: a + b,
    Op.SUB: lambda a, b: a - b,
    Op.MUL: lambda a, b: a * b,
    Op.FLOORDIV: lambda a, b: a // b if b else 0,
    Op.FLOORMOD: lambda a, b: a % b if b else 0,
    Op.TRUNCDIV: lambda a, b: truncated(a, b) if b else 0,
    Op.TRUNCMOD: lambda a, b: a - truncated(a, b) * b if b else 0,
    Op.MIN: min,
    Op.MAX: max,
    Op.AND: lambda a, b: a & b,
    Op.OR: lambda a, b: a | b,
    Op.XOR: lambda a, b: a ^ b,
    Op.SHL: lambda a, b: a << b if 0 <= b < 64 else 0,
    Op.SHR: lambda a, b: a >> b if 0 <= b < 64 else 0,
    Op.LT: lambda a, b: int(a < b),
    Op.LE: lambda a, b: int(a <= b),
    Op.EQ: lambda a, b: int(a == b),
    Op.NE: lambda a, b: int(a != b),
}
VALUES = (LEAST, LEAST + 1, -(2**32), -7, -1, 0, 1, 2, 7, 63, 64, 2**40, MOST)


@pytest.mark.parametrize("op", MEANINGS)
def test_arithmetic_of_all_borders(op: Op) -> None:
    """One program computes the operator for all pairs of values, and stores where the result is not what Python says."""
    parts: list[Code] = [(Op.CONST, 0)]
    for a, b in product(VALUES, VALUES):
        parts += [(Op.CONST, a), (Op.CONST, b), op, (Op.CONST, wrapped(MEANINGS[op](a, b))), Op.NE, Op.ADD]
    assert result(*parts) == 0


@pytest.mark.parametrize("dtype", [bool_, i8, u8, i32, i64])
@pytest.mark.parametrize("value", [0, 1, -1, 127, 128, 255, 256, 2**31, -(2**31) - 1, LEAST])
def test_casts_keep_the_bits_of_a_type(dtype: DType, value: int) -> None:
    wanted = bool(value) if dtype is bool_ else np.array([value], np.int64).astype(dtype.numpy)[0]
    assert result((Op.CONST, value), (Op.CAST, dtype.code)) == int(wanted)


# ---- what the writer refuses, and how its bytes are listed ----


def test_the_listing_shows_the_code_of_a_program() -> None:
    text = list_launch(write_launch(parse_program(LATE), 1, 1).data).splitlines()
    assert re.fullmatch(r"1 inputs, 1 outputs, \d locals, 7 slots, 4 callees, \d+ bytes", text[0])
    words = [line.split()[1] for line in text if line[:1] == " "]
    assert {"ALLOC", "FREE", "COPY", "BACK", "SKIP_ZERO", "SKIP", "CALL", "FAIL", "VIEW"} <= set(words)
    assert words.count("ALLOC") == words.count("FREE") == 3
    places = [int(line.split()[0]) for line in text if line[:1] == " "]
    targets = [int(line.split()[2]) for line in text if re.search(r"SKIP|BACK", line)]
    assert set(targets) <= set(places)
    with pytest.raises(ValueError, match="these bytes are no host program"):
        list_launch(b"nothing of the kind")


def test_a_launch_has_the_grid_of_its_bound_loops() -> None:
    made = write_launch(parse_program(DEVICE), 1, 1)
    assert made.callees == (("device", "multiply"), ("cpu", "negate"))
    lines = [line.split(None, 1)[1] for line in list_launch(made.data).splitlines() if line[:1] == " "]
    at = lines.index("LAUNCH 0")
    assert lines[at - 5 : at] == ["CONST 1", "CONST 1", "CONST 32", "CONST 1", "CONST 1"]


def test_long_programs_have_as_many_slots_as_are_in_use_at_once() -> None:
    step = "    with view(arena, 0, f32[4]) as t{n}:\n        f(t{n}.at(0))\n"
    text = LATE[: LATE.index('@function(entry=("main"')] + (
        '@function(entry=("main", ("in0", "out0", "arena")))\ndef main(in0: i64[4], out0: i64[4], arena: u8[64]):\n'
        + "".join([step.format(n=n) for n in range(500)])
        + '@function(external="m")\ndef f(p0: f32[4]):\n    pass\n'
    )
    made = write_launch(parse_program(text), 1, 1)
    assert (
        list_launch(made.data).splitlines()[0]
        == f"1 inputs, 1 outputs, 1 locals, 4 slots, 1 callees, {len(made.data)} bytes"
    )
    assert len(made.data) < 500 * 20


@pytest.mark.parametrize(
    ("found", "put", "error", "message"),
    [
        ('entry=("plan"', 'entry=("start"', LoweringError, "the entries main and plan, not start, main"),
        (
            '"in0", "out0", "arena", "in0.0"',
            '"in0", "out0", "in0.0"',
            LoweringError,
            "main: 4 parameters .* by 3 words",
        ),
        ('"out0", "arena"', '"out0", "in0.0"', LoweringError, "main: the entry argument 'in0.0' is no buffer"),
        ('"in0.0"', '"in0"', LoweringError, "main: the entry argument 'in0' is no number"),
        ("select(late < n, state[0], -1)", "i64(f32(late))", VerifyError, "the host does not compute with f32"),
    ],
)
def test_what_has_no_bytes_is_refused(found: str, put: str, error: type[Exception], message: str) -> None:
    assert found in LATE
    with pytest.raises(error, match=message):
        write_launch(parse_program(LATE.replace(found, put)), 1, 1)


def test_a_grid_on_the_host_is_refused() -> None:
    text = DEVICE.replace("global@1", "global")
    with pytest.raises(LoweringError, match="multiply is a grid of threads, but its buffers are in the host's memory"):
        write_launch(parse_program(text), 1, 1)


def test_numbers_in_few_bytes() -> None:
    assert (unsigned(127), unsigned(128), signed(63), signed(64), signed(-64)) == (
        b"\x7f",
        b"\x80\x01",
        b"\x3f",
        b"\xc0\x00",
        b"\x40",
    )
    assert OPERANDS[Op.CONST] == 1
