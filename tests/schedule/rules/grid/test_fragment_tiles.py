"""Products of 16-bit floats by warps: right thread by thread, without races or bank conflicts, and compiled as instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.lower.expanding import expand_instructions
from tests.lower.threaded import run_case
from tests.schedule.programs import Array, Case, OfBits, case
from tests.support.devices import needs_nvrtc

from weft import te
from weft.codegen.c_family.check_fragments import check_fragments
from weft.codegen.cuda import backend
from weft.codegen.cuda.cuda_kernels import whole_source
from weft.codegen.cuda.nvrtc import compile_cubin
from weft.cost import Candidate, Choosing, FragmentTile
from weft.ir import Var, cast, maximum
from weft.loop import Program, parse_program
from weft.lower import lower
from weft.ops import OPERATORS
from weft.schedule import carry_out, schedule_program
from weft.support.dtypes import DType, bf16, f16, f32, u32
from weft.support.errors import LoweringError
from weft.targets.cuda_machines import LISTED, cuda
from weft.targets.grid_machines import OPENCL
from weft.targets.instructions import FRAGMENT

TARGET = cuda("sm_80")


def product(m: int | Var, n: int, k: int, dtype: DType = f16, *, transposed: bool = False, batch: int = 0) -> Case:
    """A product with a bias; *transposed* has each column of the right factor side by side."""
    lead = (batch,) if batch else ()
    a = te.placeholder((*lead, m, k), dtype, "A")
    b = te.placeholder((*lead, n, k) if transposed else (*lead, k, n), dtype, "B")
    c, r = te.placeholder((n,), f32, "c"), te.reduce_axis(k, "r")

    def term(*at: Any) -> Any:
        *z, i, j = at
        right = b[(*z, j, r)] if transposed else b[(*z, r, j)]
        return te.sum_(cast(a[(*z, i, r)], f32) * cast(right, f32), [r])

    p = te.compute((*lead, m, n), term, "P")
    y = te.compute((*lead, m, n), lambda *at: maximum(p[at] + c[at[-1]], 0.0), "Y")

    def expected(u: Array, v: Array, w: Array) -> list[Array]:
        v = v.swapaxes(-1, -2) if transposed else v
        return [(u.astype(np.float32) @ v.astype(np.float32) + w).clip(0)]

    return case([a, b, c], [y], expected, **({"n": 40} if isinstance(m, Var) else {}))


def _same(a: FragmentTile, b: FragmentTile) -> bool:
    """Tells whether two tiles are the same, in whatever order their blocks run."""
    return replace(a, groups=b.groups) == b


def taking(tile: FragmentTile) -> Callable[[Sequence[Candidate[Any]]], Candidate[Any]]:
    def choose(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        found = [c for c in candidates if not isinstance(c.decision, FragmentTile) or _same(c.decision, tile)]
        return found[0] if found else candidates[0]

    return choose


def lowered(made: Case, tile: FragmentTile) -> Program:
    flat = lower(schedule_program(made.program, TARGET, taking(tile)).program, TARGET, verify=True)
    assert "warp.mma" in str(flat)
    return check_fragments(flat, TARGET)


CASES: dict[str, tuple[Callable[[], Case], FragmentTile]] = {
    "several warps": (lambda: product(64, 32, 64), FragmentTile(2, 2, 4, 2)),
    "bf16": (lambda: product(16, 16, 32, bf16), FragmentTile(1, 1, 2, 2)),
    "columns side by side": (lambda: product(32, 16, 32, transposed=True), FragmentTile(1, 1, 2, 1)),
    "a batch": (lambda: product(32, 16, 16, batch=3), FragmentTile(2, 1, 2, 1)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_thread_by_thread(name: str) -> None:
    make, tile = CASES[name]
    made = make()
    counted = run_case(made, expand_instructions(lowered(made, tile)), TARGET)
    assert counted.ways == 1


@pytest.mark.parametrize("tile", [FragmentTile(2, 2, 4, 2), FragmentTile(1, 1, 2, 4)], ids=str)
def test_tf32_thread_by_thread(tile: FragmentTile) -> None:
    a, b = te.placeholder((64, 32), u32, "A"), te.placeholder((32, 32), u32, "B")
    outputs = OPERATORS["matmul_tf32"]([a, b], {})

    def expected(u: Array, v: Array) -> list[Array]:
        return [u.view(np.float32) @ v.view(np.float32).T]

    made = case([a, b], outputs, expected)
    run_case(OfBits(made.program, made.oracle, made.inputs), expand_instructions(lowered(made, tile)), TARGET)


@pytest.mark.parametrize("transposed", [False, True], ids=["rows of columns", "rows of terms"])
def test_parts_of_the_terms_are_summed_by_another_kernel(*, transposed: bool) -> None:
    made = product(16, 16, 64, transposed=transposed)
    tile = FragmentTile(1, 1, 2, 1, parts=2)

    def choose(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        return Candidate(tile, 0.0) if isinstance(candidates[0].decision, FragmentTile) else candidates[0]

    flat = lower(schedule_program(made.program, TARGET, choose).program, TARGET, verify=True)
    assert "warp.mma" in str(flat)
    sums, adding = [f for f in flat.functions if "kernel" in f.name]
    assert 'bound(0, 2, thread="blockIdx.z")' in str(sums)
    assert "max(" in str(adding)  # the epilogue is of whole sums
    assert run_case(made, expand_instructions(check_fragments(flat, TARGET)), TARGET).ways == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("warps", [1, 2, 4])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("columns", [2, 4, 8])
@pytest.mark.parametrize("steps", [1, 2])
def test_every_tile(warps: int, rows: int, columns: int, steps: int) -> None:
    tile = FragmentTile(warps, rows, columns, steps)
    made = product(FRAGMENT.rows * warps * rows, FRAGMENT.columns * columns, FRAGMENT.depth * steps * 2)
    assert run_case(made, expand_instructions(lowered(made, tile)), TARGET).ways == 1


@needs_nvrtc
@pytest.mark.parametrize("arch", LISTED)
def test_machine_code(arch: str) -> None:
    made = product(256, 128, 64)
    source = backend.BACKEND.write(lowered(made, FragmentTile(4, 2, 8, 2)), cuda(arch))
    compiled = compile_cubin(whole_source(source), arch)
    (taken,) = compiled.resources.values()
    assert taken.spills == 0
    assert taken.stack == 0  # the sums are in registers
    assert taken.registers <= 255


def test_the_rule_takes_fragments_where_they_pay() -> None:
    made = product(1024, 1024, 256)
    assert "warp.mma_f16" in str(schedule_program(made.program, TARGET).program)
    planner = Choosing(OPENCL)
    assert "mma" not in str(carry_out(made.program, planner).program)
    assert FragmentTile not in {type(step.decision) for step in planner.plan.steps}  # there is nothing to choose


def test_a_size_of_which_a_call_tells_has_no_whole_fragments() -> None:
    made = product(Var("n"), 32, 32)
    assert "mma" not in str(schedule_program(made.program, TARGET).program)


def test_each_sum_has_one_place() -> None:
    places = {FRAGMENT.place(i, j) for i in range(FRAGMENT.rows) for j in range(FRAGMENT.columns)}
    assert len(places) == FRAGMENT.rows * FRAGMENT.columns
    assert max(places) == (FRAGMENT.threads - 1, FRAGMENT.halves - 1, FRAGMENT.pairs - 1)
    assert FRAGMENT.place(3, 5) == (1 * 4 + 2, 1, 1)


KERNEL = """
@function(kernel=1)
def f(x: f32[4096]):
    for b in bound(0, 1, thread="blockIdx.x"):
        A = alloc("shared", f16[4096])
        B = alloc("shared", f16[4096])
        for ty in bound(0, {groups}, thread="threadIdx.y"):
            for tx in bound(0, 4, thread="threadIdx.x"):
                P = alloc("register", f32[4])
                if {condition}:
                    call("warp.mma_f16", P.at(0), A.at({a}), B.at(tx * 2), 2, {ta}, 1, 36, 1)
"""
RIGHT = {"groups": "8", "condition": "b == 0", "a": "ty * 72", "ta": "36"}


def test_a_product_of_a_whole_warp() -> None:
    check_fragments(parse_program(KERNEL.format(**RIGHT)), TARGET)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"condition": "ty < 4"}, "is under a condition that only some threads of a warp may meet"),
        ({"condition": "x[0] < 1.0"}, "is under a condition that only some threads of a warp may meet"),
        ({"groups": "4"}, "is not made by 4 x 8 threads along x and y"),
        ({"a": "ty * 36"}, "takes other elements of A than those of its threads"),
        ({"a": "ty * 72 + tx"}, "takes other elements of A than those of its threads"),
        ({"a": "ty * 72 + 1"}, "takes pairs of A that begin at odd elements"),
        ({"a": "ty * 70", "ta": "35"}, "takes pairs of A that begin at odd elements"),
    ],
)
def test_what_a_warp_would_not_compute(change: dict[str, str], told: str) -> None:
    program = parse_program(KERNEL.format(**{**RIGHT, **change}))
    with pytest.raises(LoweringError) as error:
        check_fragments(program, TARGET)
    assert str(error.value) == (
        f"f: warp.mma_f16 {told}\n  hint: schedule it as `schedule/rules/grid/fragment_tiles.py` does"
    )


def test_a_formula_that_reads_a_sum_twice_is_an_epilogue() -> None:
    a, b, r = te.placeholder((64, 64), f16, "A"), te.placeholder((64, 64), f16, "B"), te.reduce_axis(64, "r")
    p = te.compute((64, 64), lambda i, j: te.sum_(cast(a[i, r], f32) * cast(b[r, j], f32), [r]), "P")
    x = te.compute((64, 64), lambda i, j: p[i, j] + 1.0, "X")
    h = te.compute((64, 64), lambda i, j: maximum(x[i, j], 0.0), "H")
    y = te.compute((64, 64), lambda i, j: x[i, j] * h[i, j], "Y")
    made = case([a, b], [y], lambda u, v: [])
    flat = lower(schedule_program(made.program, TARGET, taking(FragmentTile(2, 2, 4, 2))).program, TARGET, verify=True)
    assert len(flat.functions) == 2  # the host's, and one kernel
