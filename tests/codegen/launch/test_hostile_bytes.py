"""Bytes that nobody would write: refused when they are opened, or stopped at the access that is outside."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codegen.launch.assembling import MOST, OUT, PLAN, assembled, code, model

from weft.codegen.launch.instruction_set import CONTEXT, VERSION, Op, Word
from weft.native import _rt
from weft.support.dtypes import f32, i64, u8

SMALL = code(OUT, (Op.CONST, 0), (Op.CONST, 7), (Op.STORE, 0, i64.code), Op.END)
ROWS = b"\0\2bv"

MALFORMED = {
    "no end": code((Op.CONST, 1)),
    "no instruction of this number": bytes([len(Op), 0]),
    "stack is empty": code(Op.ADD, Op.END),
    "stack is too low": code((Op.CONST, 1), Op.ADD, Op.END),
    "local": code((Op.GET, 4), Op.END),
    "slot": code((Op.BIND, 4, 0, 0), Op.END),
    "slot of a source": code((Op.CONST, 0), (Op.CONST, 0), (Op.VIEW, 0, 4), Op.END),
    "input": code((Op.BIND, 0, Word.IN, 1), Op.END),
    "output": code((Op.BIND, 0, Word.OUT_SHAPE, 1), Op.END),
    "word": code((Op.BIND, 0, len(Word), 0), Op.END),
    "number of a word without": code((Op.BIND, 0, Word.ARENA, 1), Op.END),
    "context": code((Op.CONTEXT, len(CONTEXT)), Op.END),
    "size of no tensor": code((Op.SIZE, Word.ARENA, 0, 0), Op.END),
    "dimension": code((Op.SIZE, Word.IN, 0, 64), Op.END),
    "type": code((Op.CONST, 0), (Op.LOAD, 0, f32.code), Op.END),
    "callee": code((Op.CALL, 1), Op.END),
    "launch on the host": code(*[(Op.CONST, 1)] * 6, (Op.LAUNCH, 0), Op.END),
    "details of a failure": code((Op.CONST, 1), (Op.FAIL, 3, 2)),
    "five details": code(*[(Op.CONST, 1)] * 5, (Op.FAIL, 3, 5)),
    "number of a check": code((Op.FAIL, 2**31, 0)),
    "skip past the end": code((Op.SKIP, 1), Op.END),
    "skip into an operand": code((Op.CONST, 0), (Op.SKIP_ZERO, 1), (Op.CONST, 0), (Op.SET, 0), Op.END),
    "skip with another height": code((Op.CONST, 0), (Op.SKIP_ZERO, 2), (Op.CONST, 5), Op.END),
    "back by nothing": code((Op.BACK, 0)),
    "back before the code": code((Op.BACK, 3)),
    "back into an operand": code((Op.CONST, 1), (Op.SET, 0), (Op.BACK, 3)),
    "back with another height": code((Op.CONST, 1), (Op.BACK, 4)),
    "code that is never reached": code(Op.END, Op.END),
    "number that does not end": bytes([Op.GET, 0x80]),
    "number that is too long": bytes([Op.GET, 0x80, 0x80, 0x80, 0x80, 0x80, 0]),
    "number that is too large": bytes([Op.GET, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
    "value that does not end": bytes([Op.CONST, *[0x80] * 20]),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_code_is_refused(name: str) -> None:
    assert model(assembled(SMALL, PLAN, ROWS, 1), 1).run([np.zeros(1, np.int64)])[0].tolist() == [7]
    for plan, main in ((PLAN, MALFORMED[name]), (MALFORMED[name], SMALL)):
        with pytest.raises(ValueError, match="the host program was altered: it is not well-formed"):
            model(assembled(main, plan, ROWS, 1), 1)


@pytest.mark.parametrize("rows", [b"", b"\0", b"\0\3bv", b"\0\2bx", b"\0\2bv\0", b"\0\x81\1" + b"b" * 129])
def test_malformed_rows_are_refused(rows: bytes) -> None:
    with pytest.raises(ValueError, match="it is not well-formed"):
        model(assembled(SMALL, PLAN, rows, 1), 1)


def test_every_truncation_and_other_versions_are_refused() -> None:
    whole = assembled(SMALL, PLAN, ROWS, 1)
    for size in range(len(whole)):
        with pytest.raises(ValueError, match=r"well-formed|no host program"):
            model(whole[:size], 1)
    with pytest.raises(ValueError, match="well-formed"):
        model(whole + b"\0", 1)
    with pytest.raises(ValueError, match="of another version of Weft"):
        model(whole[:4] + bytes([VERSION + 1]) + whole[5:], 1)
    with pytest.raises(ValueError, match="these bytes are no host program"):
        model(b"x" + whole[1:], 1)


def test_devices_that_are_not_there_are_named() -> None:
    for rows, main in ((b"\1\0", SMALL), (b"\0\0", code((Op.CONST, 8), (Op.ALLOC, 1, 1), SMALL))):
        with pytest.raises(ValueError, match="the host program uses a device that is not there"):
            model(assembled(main, PLAN, rows, 1), 1)


TAKE = code((Op.CONST, 16), (Op.ALLOC, 2, 0))
FAULTS = {
    "element past the end": code((Op.CONST, 1), (Op.LOAD, 1, i64.code), (Op.SET, 0)),
    "element before the begin": code((Op.CONST, -1), (Op.LOAD, 1, i64.code), (Op.SET, 0)),
    "element of a wider type": code((Op.CONST, 1), (Op.CONST, 1), (Op.STORE, 0, i64.code)),
    "element of no buffer": code((Op.CONST, 0), (Op.LOAD, 3, u8.code), (Op.SET, 0)),
    "store to an input": code((Op.CONST, 0), (Op.CONST, 1), (Op.STORE, 1, u8.code)),
    "store to a view of the constants": code(
        (Op.BIND, 2, Word.CONSTANTS, 0),
        (Op.CONST, 0),
        (Op.CONST, 8),
        (Op.VIEW, 3, 2),
        (Op.CONST, 0),
        (Op.CONST, 1),
        (Op.STORE, 3, u8.code),
    ),
    "copy to an input": code((Op.CONST, 0), (Op.CONST, 0), (Op.CONST, 1), (Op.COPY, 1, 0)),
    "copy past the end": code((Op.CONST, 0), (Op.CONST, 4), (Op.CONST, 8), (Op.COPY, 0, 1)),
    "copy over itself": code(
        (Op.CONST, 0),
        (Op.CONST, 4),
        (Op.CONST, 4),
        (Op.COPY, 0, 0),
        *[(Op.CONST, 0)] * 2,
        (Op.CONST, 1),
        (Op.COPY, 0, 0),
    ),
    "copy of less than nothing": code((Op.CONST, 0), (Op.CONST, 0), (Op.CONST, -1), (Op.COPY, 0, 1)),
    "view past the end": code((Op.CONST, 1), (Op.CONST, 8), (Op.VIEW, 2, 0)),
    "view whose end wraps": code((Op.CONST, 1), (Op.CONST, MOST), (Op.VIEW, 2, 0)),
    "view before the begin": code((Op.CONST, -1), (Op.CONST, 8), (Op.VIEW, 2, 0)),
    "view of a view past its end": code(
        (Op.CONST, 0), (Op.CONST, 4), (Op.VIEW, 2, 0), (Op.CONST, 0), (Op.CONST, 5), (Op.VIEW, 3, 2)
    ),
    "memory of a negative size": code((Op.CONST, -1), (Op.ALLOC, 2, 0)),
    "memory taken twice": code(TAKE, TAKE),
    "slot of memory bound again": code(TAKE, (Op.BIND, 2, Word.IN, 0)),
    "slot of memory as a view": code(TAKE, (Op.CONST, 0), (Op.CONST, 0), (Op.VIEW, 2, 1)),
    "nothing to free": code(Op.FREE),
    "memory freed twice": code(TAKE, Op.FREE, Op.FREE),
    "memory after it is freed": code(TAKE, Op.FREE, (Op.CONST, 0), (Op.LOAD, 2, u8.code), (Op.SET, 0)),
    "a view of memory after it is freed": code(
        TAKE, (Op.CONST, 8), (Op.CONST, 8), (Op.VIEW, 3, 2), Op.FREE, (Op.CONST, 0), (Op.LOAD, 3, u8.code), (Op.SET, 0)
    ),
    "memory freed that a call is to be given": code(TAKE, (Op.CONST, 0), (Op.CONST, 8), (Op.BUFFER, 2), Op.FREE),
    "too few arguments": code((Op.CONST, 0), (Op.CONST, 8), (Op.BUFFER, 0), (Op.CALL, 0)),
    "too many arguments": code(code((Op.CONST, 0), Op.VALUE) * 300),
    "another order of arguments": code(
        (Op.CONST, 1), Op.VALUE, (Op.CONST, 0), (Op.CONST, 8), (Op.BUFFER, 0), (Op.CALL, 0)
    ),
    "an argument past the end": code((Op.CONST, 0), (Op.CONST, 9), (Op.BUFFER, 0)),
    "store to the shape of an output": code(
        (Op.BIND, 2, Word.OUT_SHAPE, 0), (Op.CONST, 0), (Op.CONST, 1000), (Op.STORE, 2, i64.code)
    ),
    "store to the size of the arena": code(
        (Op.BIND, 2, Word.ARENA_NEEDED, 0), (Op.CONST, 0), (Op.CONST, 1000), (Op.STORE, 2, i64.code)
    ),
    "size of no dimension": code((Op.SIZE, Word.OUT, 0, 1), (Op.SET, 0)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_accesses_outside_stop_the_call(name: str) -> None:
    main = code(OUT, (Op.BIND, 1, Word.IN, 0), FAULTS[name], Op.END)
    data = assembled(main, PLAN, ROWS, 1)
    opened = model(data, 1, bytes(64))
    for _ in range(2):
        with pytest.raises(_rt.Failed) as told:
            opened.run([np.zeros(1, np.int64)])
        status, entry, _, detail = told.value.args
        assert (status, entry) == (_rt.DAMAGED, "main")
        assert 40 < detail[0] < len(data)


@pytest.mark.parametrize("word", [Word.IN, Word.OUT, Word.ARENA])
def test_a_plan_sees_no_data(word: Word) -> None:
    """An output's shape is what the plan has just made it, and no memory of that size is there."""
    plan = code(PLAN[:-1], (Op.BIND, 1, word, 0), (Op.CONST, 0), (Op.LOAD, 1, i64.code), (Op.SET, 0), Op.END)
    with pytest.raises(_rt.Failed) as told:
        model(assembled(SMALL, plan)).run([np.zeros(1, np.int64)])
    assert told.value.args[:2] == (_rt.DAMAGED, "plan")


def test_an_output_and_kept_memory_of_its_number_are_apart() -> None:
    """Even where the caller does not give the output its memory: that which is kept may move when it grows."""
    grown = code((Op.CONST, 4096), (Op.KEEP, 2, 0), (Op.CONST, 0), (Op.CONST, 9), (Op.STORE, 2, i64.code))
    asked = code((Op.CONST, 1), (Op.OUTPUT, 1, 0, 1), (Op.CONST, 0), (Op.CONST, 7), (Op.STORE, 1, i64.code))
    there = code(OUT, (Op.CONST, 0), (Op.LOAD, 0, i64.code), (Op.CONST, 7), Op.NE)
    main = code(asked, grown, there, (Op.SKIP_ZERO, len(code((Op.FAIL, 1, 0)))), (Op.FAIL, 1, 0), Op.END)
    model(assembled(main, PLAN)).run([np.zeros(1, np.int64)])


def test_memory_that_can_not_be_had_is_an_error() -> None:
    main = code((Op.CONST, 2**61), (Op.ALLOC, 2, 0), Op.FREE, Op.END)
    with pytest.raises(_rt.Failed) as told:
        model(assembled(main, PLAN)).run([np.zeros(1, np.int64)])
    assert told.value.args[0] == _rt.NO_MEMORY


def test_values_are_not_addresses() -> None:
    """The address that a call is given comes from a slot: no value on the stack is one, whatever arithmetic makes of it."""
    with pytest.raises(_rt.Failed):
        model(
            assembled(
                code(OUT, (Op.CONST, 2**47), Op.VALUE, (Op.CONST, 0), Op.VALUE, (Op.CALL, 0), Op.END), PLAN, ROWS, 1
            ),
            1,
        ).run([np.zeros(1, np.int64)])
