"""Sums of a tile beyond the end of a product are made without a condition, where nobody reads them."""

from __future__ import annotations

import pytest
from tests.lower.threaded import run_case
from tests.schedule.programs import matmul

from weft.cost import SharedTile, ThreadBlock, parse_plan
from weft.loop import If, Store, loads, parse_program, print_program, statements
from weft.lower import lower
from weft.lower.grid.unguard_register_sums import unguard_register_sums
from weft.schedule import apply_plan
from weft.targets.grid_machines import OPENCL

KERNEL = """
@function(kernel=1)
def f(A: f32[64], C: f32[64]):
    for tx in bound(0, 8, thread="threadIdx.x"):
        c = alloc("register", f32[4])
        for i in range(0, 4):
            if tx * 4 + i < 30:
                c[i] = 0.0
        for k in range(0, 2):
            for j in range(0, 4):
                if tx * 4 + j < 30:
                    c[j] = c[j] + A[{read}]
        for m in range(0, 4):
            if {condition}:
                C[tx * 4 + m] = c[{left}]
"""
PLAIN = {"read": "k * 32 + tx * 4 + j", "condition": "tx * 4 + m < 30", "left": "m"}


def conditions(**changed: str) -> int:
    """How many conditions are left."""
    program = parse_program(KERNEL.format(**{**PLAIN, **changed}))
    return print_program(unguard_register_sums(program)).count("if ")


def test_elements_that_nobody_reads_are_summed_without_a_condition() -> None:
    assert conditions() == 1


@pytest.mark.parametrize(
    "changed",
    [{"condition": "tx * 4 + m < 31"}, {"condition": "m < 3"}, {"left": "3 - m"}, {"left": "0"}],
    ids=["one more is read", "another condition", "another order", "always the first"],
)
def test_elements_that_are_read_keep_it(changed: dict[str, str]) -> None:
    assert conditions(**changed) == 3


def test_nothing_is_read_outside_of_a_buffer() -> None:
    assert conditions(read="k * 34 + tx * 4 + j") == 3


@pytest.mark.parametrize("n", [100, 49, 30])
def test_products_that_tiles_do_not_divide(n: int) -> None:
    of = matmul(n, n, 32)
    tile = SharedTile(8, 8, 4, 4, 16, lanes=4 if n % 4 == 0 else 1, run=4)
    program = lower(
        apply_plan(of.program, parse_plan(f"*: {ThreadBlock(64)}\nC: {tile}\n")).program, OPENCL, verify=True
    )
    run_case(of, program, OPENCL)
    guarded = [
        x for f in program.functions for s in statements(f.body) if isinstance(s, If) for x in statements(s.then)
    ]
    assert guarded
    assert not any(x.buffer.name.endswith("_shared") for s in guarded if isinstance(s, Store) for x in loads(s.value))
