"""Regions derived from bodies."""

from __future__ import annotations

import pytest

from weft.ir import Names
from weft.loop import Block, block_regions, parse_program
from weft.loop.printer import StmtPrinter
from weft.loop.visit import blocks

CASES = {
    "points, each once": ("C[v] = A[v, w] * A[v, w] + B[w] * A[w, v]", "A[v, w], B[w], A[w, v]", "C[v]"),
    "what is read and written without an init": ("C[v] = C[v] + B[w]", "C[v], B[w]", "C[v]"),
    "an inner loop widens": ("for k in range(0, 4):\n    C[v * 4 + k] = B[k * 2]", "B[0:7]", "C[v * 4:v * 4 + 4]"),
    "a loop from one of the axes": ("for k in range(v, v + 3):\n    C[k] = 0.0", "", "C[v:v + 3]"),
    "nested loops": (
        "for k in range(0, 4):\n    for l in range(0, 2):\n        C[k * 2 + l + v] = A[l, 7 - k]",
        "A[0:2, 4:8]",
        "C[v:v + 8]",
    ),
    "a symbolic loop": ("for k in range(0, n):\n    C[k] = B[k]", "B[0:64]", "C[0:64]"),
    "an index from memory": ("C[I[v]] = B[I[w]]", "I[v], B[0:64], I[w]", "C[0:64]"),
    "an index bound inside": ("k = let(v + w)\nC[k] = 0.0", "", "C[0:64]"),
    "a vector": ("C[ramp(v, 1, 4)] = broadcast(B[v], 4)", "B[v]", "C[0:64]"),
    "memory of its own": ('t = alloc("local", f32[8])\nt[0] = B[v]\nC[v] = t[0]', "B[v]", "C[v]"),
    "a view": ("t = view(A, 0, f32[8])\nt[v] = B[v]", "B[v]", "A[0:64, 0:64]"),
    "an address may be read and written": ("f(C.at(v))", "C[0:64]", "C[0:64]"),
    "an inner reduction is not read from outside": (
        'for k in range(0, 4):\n    with block("inner", x=spatial(64, v * 2), y=reduce(4, k)):\n'
        "        with init():\n            C[x] = 0.0\n        C[x] = C[x] + B[y]",
        "B[0:4]",
        "C[v * 2]",
    ),
    "where an inner block is bound": (
        'for k in range(0, 4):\n    with block("inner", x=spatial(64, v * 4 + k)):\n        C[x] = B[x + 1]',
        "B[v * 4 + 1:v * 4 + 1 + 4]",
        "C[v * 4:v * 4 + 4]",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_regions_of_a_body(name: str) -> None:
    text, reads, writes = CASES[name]
    assert _derived(text, "") == (reads, writes)


def test_a_reduction_does_not_read_its_own_result() -> None:
    assert _derived("C[v] = C[v] + B[w]", "C[v] = 0.0") == ("B[w]", "C[v]")
    assert _derived("C[v] = C[v + 1] + B[w]", "C[v] = B[3]") == ("C[v + 1], B[w], B[3]", "C[v]")


def _derived(body: str, init: str) -> tuple[str, str]:
    lines = [f"        {x}" for x in ("with init():", f"    {init}") if init] + [
        f"        {x}" for x in body.splitlines()
    ]
    program = parse_program(
        "def main(A: f32[64, 64], B: f32[64], C: f32[64], I: i64[64], n: i64):\n"
        '    with block("b", v=spatial(4, 0), w=reduce(4, 0)):\n' + "\n".join(lines) + "\n"
    )
    outer: Block = next(blocks(program.entry.body))
    p = StmtPrinter(Names())
    reads, writes = block_regions(outer.body, outer.init)
    return ", ".join([p.region(r) for r in reads]), ", ".join([p.region(r) for r in writes])
