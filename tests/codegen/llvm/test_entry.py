"""The C entry points read tensors' descriptors and the context as their notes say."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS, Array, machine_for
from tests.support.jit import Machine

from weft.codegen.entry_spec import entry_of
from weft.codegen.llvm.ir_module import llvm_text
from weft.ir import Cast, Var
from weft.loop import Buffer, Entry, Function, Program, Stmt, for_, parse_program, seq, store
from weft.loop.nodes import load
from weft.support.dtypes import f32, i64, u8
from weft.support.errors import LoweringError


class Tensor(ctypes.Structure):
    """A tensor's descriptor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.c_void_p),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


def descriptors(arrays: Sequence[Array | None], shapes: Sequence[Array]) -> ctypes.Array[Tensor]:
    made = [
        Tensor(None if a is None else a.ctypes.data, s.ctypes.data, len(s), f32.code)
        for a, s in zip(arrays, shapes, strict=True)
    ]
    return (Tensor * len(made))(*made)


def entry(name: str, kind: str, args: str, params: list[Buffer | Var], body: Stmt) -> Function:
    return Function(name, tuple(params), body, (Entry(kind, tuple(args.split())),))


def enter(machine: Machine, symbol: str, inputs: ctypes.Array[Tensor], outputs: ctypes.Array[Tensor]) -> None:
    machine.call(symbol, ctypes.c_void_p(ctypes.addressof(inputs)), ctypes.c_void_p(ctypes.addressof(outputs)))


@pytest.mark.parametrize("name", TARGETS)
def test_plan_and_main(name: str) -> None:
    """out[m, n] = in0[m, n] + in1[n] + weight, by way of the arena; every row of in0 is one longer than planned for."""
    m, n, i, threads = Var("m"), Var("n"), Var("i"), Var("threads")
    x, bias, y = Buffer("x", [m * n], f32), Buffer("bias", [n], f32), Buffer("y", [m * n], f32)
    arena, constants = Buffer("arena", [1 << 20], u8), Buffer("constants", [4], f32)
    shape, needed = Buffer("shape", [2], i64), Buffer("needed", [1], i64)
    plan_body = seq(store(shape, [0], m), store(shape, [1], n + 0), store(needed, [0], n * 4 * threads))
    plan = entry(
        "plan", "plan", "in0.0 in1.0 threads out0.shape arena_needed", [m, n, threads, shape, needed], plan_body
    )
    touch = store(arena, [0], Cast(threads, u8))
    value = load(x, i) + load(bias, i % n) + load(constants, 1)
    run = seq(touch, for_(i, m * n, store(y, [i], value)))
    words = "in0 in1 out0 in0.0 in1.0 arena constants arena_bytes"
    main = entry("model", "main", words, [x, bias, y, m, n, arena, constants, threads], run)
    machine = machine_for([plan, main], TARGETS[name])
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([10, 20, 30], np.float32)
    sizes, out_size, got = [np.array([2, 3]), np.array([3])], np.zeros(2, np.int64), np.zeros((2, 3), np.float32)
    machine.ctx.threads = 5
    inputs = descriptors([a, b], sizes)
    enter(machine, "weft_plan", inputs, descriptors([None], [out_size]))
    assert out_size.tolist() == [2, 3]
    assert machine.ctx.arena_needed == 3 * 4 * 5
    memory, packed = np.zeros(60, np.uint8), np.array([0, 100, 0, 0], np.float32)
    machine.ctx.arena, machine.ctx.constants, machine.ctx.arena_bytes = memory.ctypes.data, packed.ctypes.data, 60
    enter(machine, "weft_main", inputs, descriptors([got], [out_size]))
    np.testing.assert_array_equal(got, a + b + 100)
    assert memory[0] == 60
    assert set(machine.image.symbols) == {"weft_main", "weft_plan"}


def test_notes_read_back() -> None:
    spec = Entry("main", ("in0", "out0.1"))
    f = Function("f", (), seq(), (spec,))
    assert entry_of(f) is spec
    assert entry_of(parse_program(str(f)).entry) is spec
    assert spec.symbol == "weft_main"
    assert entry_of(Function("f", (), seq())) is None


WRONG = [
    ("main", "in0 out0", "1 parameters are described by 2 words"),
    ("main", "input", "the entry argument 'input' is not understood"),
    ("main", "in0.1", "the parameter x is ptr, but 'in0.1' is i64"),
    ("start", "in0", "there is no entry point 'start'"),
]


@pytest.mark.parametrize(("kind", "args", "message"), WRONG)
def test_words_that_do_not_fit_are_refused(kind: str, args: str, message: str) -> None:
    f = entry("f", kind, args, [Buffer("x", [1], f32)], seq())
    with pytest.raises(LoweringError, match=message):
        llvm_text(Program((f,)), TARGETS["sse4"])
