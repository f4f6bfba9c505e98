"""Virtual threads: what they share, what is written out for each, and that any of them compute what they did one by one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from tests.lower.running import before_and_after, inputs_of, results
from tests.lower.test_random import in_order, same
from tests.strategies import programs
from tests.support.sampling import tried

from weft.ir import Node, Var, index, map_nodes, simplify
from weft.loop import (
    Address,
    Buffer,
    For,
    Function,
    Load,
    LoopKind,
    Note,
    Program,
    Stmt,
    Store,
    Thread,
    View,
    parse_program,
    print_program,
    statements,
    verify,
    with_buffers,
)
from weft.lower.buffers.flatten_buffers import flatten_buffers
from weft.lower.buffers.lower_blocks import lower_blocks
from weft.lower.units.inject_virtual_threads import inject_virtual_threads, is_vthread
from weft.support.errors import LoweringError
from weft.targets import cpu
from weft.targets.instructions.gemm_unit import GEMM_UNIT_TARGET

AVX2 = cpu("avx2")


def injected(program: Program) -> Program:
    return inject_virtual_threads(program, AVX2)


SHARED = """
def main(A: f32[8, 4], B: f32[2, 8, 4]):
    for v in bound(0, 2, thread="vthread"):
        T = alloc("local", f32[4])
        U = alloc("local", f32[4])
        for k in range(0, 8):
            for j in range(0, 4):
                T[j] = A[k, j] * 2.0
                U[j] = T[j] + f32(v)
            if k < 4:
                for j_1 in range(0, 4):
                    B[v, k, j_1] = U[j_1] * T[j_1]
            else:
                B[v, k, 0] = U[0]
"""

OWN_LENGTHS = """
def main(A: f32[3, 6], B: f32[3, 6]):
    for v in bound(0, 3, thread="vthread"):
        T = alloc("local", f32[6])
        for k in range(0, v + 2):
            T[k] = A[v, k]
        for k_1 in range(0, v + 2):
            B[v, k_1] = T[k_1]
        if v < 2:
            B[v, 5] = A[v, 5]
"""

NAMES = """
def main(A: f32[3, 6], B: f32[3, 6]):
    for v in bound(0, 3, thread="vthread"):
        row = view(B, v * 6, f32[6])
        x = let(A[v, 0])
        y = let(A[0, 1])
        for k in range(0, 6):
            z = let(A[v, k] + x)
            row[k] = z * y
        check(v < 3, "there are {0} threads", v)
"""

TURNS = """
def main(A: i32[2, 4], B: i32[2]):
    for v in bound(0, 2, thread="vthread"):
        n = alloc("local", i32[1])
        n[0] = A[v, 0]
        while n[0] > i32(1):
            n[0] = n[0] // i32(2)
            B[v] = B[v] + i32(1)
"""

NESTED = """
def main(A: f32[2, 4], B: f32[2, 2, 4]):
    for v in bound(0, 2, thread="vthread"):
        T = alloc("local", f32[4])
        for j in range(0, 4):
            T[j] = A[v, j]
        for w in bound(0, 2, thread="vthread"):
            U = alloc("local", f32[1])
            for j_1 in range(0, 4):
                U[0] = T[j_1] * f32(w)
                B[v, w, j_1] = U[0]
"""


@pytest.mark.parametrize("name", ["SHARED", "OWN_LENGTHS", "NAMES", "TURNS", "NESTED"])
def test_threads(name: str, golden: Callable[[str], None]) -> None:
    golden(before_and_after(globals()[name], injected))


def test_no_threads_change_nothing() -> None:
    program = parse_program("def main(A: f32[4]):\n    for i in parallel(0, 4):\n        A[i] = 1.0\n")
    assert injected(program) is program


def test_units_have_all_memory_twice_and_keep_their_pieces_together(golden: Callable[[str], None]) -> None:
    text = """
def main(X: f32[8], Y: f32[2, 8]):
    for v in bound(0, 2, thread="vthread"):
        I = alloc("inp", f32[2])
        A = alloc("acc", f32[1])
        for k in range(0, 4):
            for j in range(0, 2):
                I[j] = X[k * 2 + j]
            A[0] = I[0] + I[1]
            Y[v, k] = A[0]
"""
    golden(before_and_after(text, lambda p: inject_virtual_threads(p, GEMM_UNIT_TARGET)))


def test_refused_for_blocks_and_unknown_numbers() -> None:
    unknown = 'def main(A: f32[n], n: i64):\n    for v in bound(0, n, thread="vthread"):\n        A[v] = 1.0\n'
    with pytest.raises(LoweringError, match="the number of virtual threads of the loop v is not a constant"):
        injected(parse_program(unknown))
    block = """
def main(A: f32[4]):
    for v in bound(0, 4, thread="vthread"):
        with block("A", vi=spatial(4, v)):
            A[vi] = 1.0
"""
    with pytest.raises(LoweringError, match="the block A is in a virtual thread"):
        injected(parse_program(block))


def threaded(program: Program, count: int) -> tuple[Program, Program]:
    """The program *count* times, each on its own part of all buffers: by virtual threads, and one after the other."""
    f = flatten_buffers(lower_blocks(in_order(program))).entry
    v = Var("thread")
    larger = {
        p: Buffer(p.name, (simplify(p.shape[0] * count),), p.dtype, p.scope) for p in f.params if isinstance(p, Buffer)
    }

    def change(n: Node) -> Node | None:
        match n:
            case Load(b, (i,)) | Address(b, (i,)) if b in larger and i.dtype.lanes == 1:
                return type(n)(larger[b], (v * b.shape[0] + i,))
            case Store(b, (i,), value, mask) if b in larger and i.dtype.lanes == 1:
                return Store(larger[b], (v * b.shape[0] + i,), value, mask)
            case View(b, source, offset, body) if source in larger:
                return View(b, larger[source], v * source.shape[0] + offset, body)
            case Note():
                return with_buffers(n, larger)
        return None

    made: list[Program] = []
    for kind, notes in ((LoopKind.BOUND, (Thread("vthread"),)), (LoopKind.SERIAL, ())):
        body: Stmt = For(v, index(0), index(count), kind, map_nodes(f.body, change), notes)
        params = tuple([p if isinstance(p, Var) else larger[p] for p in f.params])
        entry = Function(f.name, params, body, f.notes)
        made.append(Program((entry, *program.functions[1:])))
    return made[0], made[1]


@tried(15, 60, programs(), st.integers(1, 3))
def test_any_program_in_several_threads(drawn: Program, count: int) -> None:
    threads, wanted = threaded(drawn, count)
    after = injected(threads)
    verify(after)
    assert not any(is_vthread(s) for s in statements(after.entry.body))
    values = inputs_of(wanted)
    for x, y in zip(results(wanted, values), results(after, values), strict=True):
        assert same(x, y), f"{print_program(threads)}\n->\n\n{print_program(after)}"
