"""Host programs written by hand: loops, branches, sizes that kernels compute, and the memory of a device."""

from __future__ import annotations

from typing import Final

from weft.loop import Program, parse_program

LATE: Final = """
@function(entry=("plan", ("in0.shape", "out0.shape", "arena_needed")))
def plan(in0_shape: i64[1], out0_shape: i64[1], arena_needed: i64[1]):
    n = let(in0_shape[0])
    check(1 <= n, "input x: dimension 0 is {0}, which is too small", n)
    out0_shape[0] = n
    arena_needed[0] = 64

@function(entry=("main", ("in0", "out0", "arena", "in0.0")))
def main(in0: i64[n], out0: i64[n], arena: u8[64], n: i64):
    found = view(arena, 0, i64[1])
    count_positive(in0.at(0), found.at(0), n)
    late = let(found[0])
    fill(out0.at(0), n)
    if 0 < late:
        kept = alloc("global", i64[late])
        keep_positive(in0.at(0), kept.at(0), n, late)
        state = alloc("global", i64[2])
        more = alloc("global", bool[1])
        state[0] = 0
        more[0] = True
        while more[0] and state[0] < 80:
            halve(kept.at(0), more.at(0), late)
            state[0] = state[0] + 1
        check(state[0] <= 5, "{0} values take {1} steps", late, state[0])
        call("weft.copy", out0.at(0), kept.at(0), late)
        state[1] = select(late < n, state[0], -1)
        if state[1] != -1:
            call("weft.copy", out0.at(late), state.at(1), 1)
    else:
        out0[0] = -2

@function(external="counting")
def count_positive(p0: i64[n], t0: i64[1], n: i64):
    pass

@function(external="counting")
def keep_positive(p0: i64[n], t0: i64[late], n: i64, late: i64):
    pass

@function(external="arithmetic")
def halve(t0: i64[late], t1: bool[1], late: i64):
    pass

@function(external="arithmetic")
def fill(t0: i64[n], n: i64):
    pass
"""
"""Keeps the positive elements, in memory whose size is counted first, and halves them until all are at most one.

The output has them at its front, then the number of steps where there is room, and -1 behind. Where there are none, it begins
with -2.
"""

LATE_KERNELS: Final = {
    "count_positive": """
def count_positive(p0: i64[n], t0: i64[1], n: i64):
    t0[0] = 0
    for i in range(0, n):
        t0[0] = t0[0] + select(0 < p0[i], 1, 0)
""",
    "keep_positive": """
def keep_positive(p0: i64[n], t0: i64[late], n: i64, late: i64):
    at = alloc("local", i64[1])
    at[0] = 0
    for i in range(0, n):
        if 0 < p0[i]:
            t0[at[0]] = p0[i]
            at[0] = at[0] + 1
""",
    "halve": """
def halve(t0: i64[late], t1: bool[1], late: i64):
    t1[0] = False
    for i in range(0, late):
        t0[i] = t0[i] // 2
        if 1 < t0[i]:
            t1[0] = True
""",
    "fill": """
def fill(t0: i64[n], n: i64):
    for i in range(0, n):
        t0[i] = -1
""",
}

ASKED: Final = """
@function(entry=("plan", ("in0.shape", "out0.shape", "out1.shape", "arena_needed")))
def plan(in0_shape: i64[1], out0_shape: i64[2], out1_shape: i64[1], arena_needed: i64[1]):
    out0_shape[0] = -1
    out0_shape[1] = 2
    out1_shape[0] = -1
    arena_needed[0] = 64

@function(entry=("main", ("in0", "arena", "in0.0")))
def main(in0: i64[n], arena: u8[64], n: i64):
    state = view(arena, 0, i64[2])
    count_positive(in0.at(0), state.at(0), n)
    late = let(state[0])
    out0 = alloc("output@0", i64[late, 2])
    pairs = view(out0, 0, i64[late * 2], scope="global")
    state[1] = 0
    while state[1] < 2 * late:
        rows = alloc("kept@3", i64[state[1] + 1])
        rows[state[1]] = state[1] * 10
        state[1] = state[1] + 1
    if 0 < late:
        rows = alloc("kept@3", i64[2 * late])
        call("weft.copy", pairs.at(0), rows.at(0), 2 * late)
    out1 = alloc("output@1", i64[late])
    if 0 < late:
        keep_positive(in0.at(0), out1.at(0), n, late)

@function(external="counting")
def count_positive(p0: i64[n], t0: i64[1], n: i64):
    pass

@function(external="counting")
def keep_positive(p0: i64[n], t0: i64[late], n: i64, late: i64):
    pass
"""
"""The positive elements, and pairs of numbers that are written one by one: both outputs are asked of the caller."""

DEVICE: Final = """
@function(entry=("plan", ("in0.shape", "out0.shape", "arena_needed")))
def plan(in0_shape: i64[1], out0_shape: i64[1], arena_needed: i64[1]):
    check(in0_shape[0] <= 1000, "at most {1} elements, not {0}", in0_shape[0], 1000)
    out0_shape[0] = in0_shape[0]
    arena_needed[0] = in0_shape[0] * 4 + 128

@function(entry=("main", ("in0", "out0", "arena", "constants", "in0.0")))
def main(in0: i32[n], out0: i32[n], arena: u8[n * 4 + 128], constants: u8[64], n: i64):
    steps = view(arena, n * 4 + 64, i32[16])
    steps[0] = i32(0)
    scale = view(constants, 0, i32[16])
    there = alloc("global@1", i32[n])
    table = alloc("global@1", i32[16])
    call("weft.copy", there.at(0), in0.at(0), n)
    call("weft.copy", table.at(0), scale.at(0), 16)
    while i64(steps[0]) < 3:
        if n % 2 == 0 or i64(steps[0]) == 0:
            multiply(there.at(0), table.at(i64(steps[0])), n)
        else:
            half = view(there, n // 2, i32[n - n // 2])
            spare = alloc("global@1", i32[n - n // 2])
            call("weft.copy", spare.at(0), half.at(0), n - n // 2)
            multiply(spare.at(0), table.at(4), n - n // 2)
            call("weft.copy", half.at(0), spare.at(0), n - n // 2)
        steps[0] = i32(i64(steps[0]) + 1)
    here = view(arena, 0, i32[n])
    call("weft.copy", here.at(0), there.at(0), n)
    check(here[0] != i32(7), "the first is {0} of {1}", i64(here[0]), n)
    negate(here.at(0), out0.at(0), n)

@function(kernel=1, external="device")
def multiply(t0: buffer("global@1", i32[n]), p1: buffer("global@1", i32[1]), n: i64):
    for i in bound(0, (n + 31) // 32, thread="blockIdx.x"):
        for j in bound(0, 32, thread="threadIdx.x"):
            pass

@function(external="cpu")
def negate(p0: i32[n], t0: i32[n], n: i64):
    pass
"""
"""Multiplies by three numbers of a table in the memory of a device, and negates on the host."""

DEVICE_KERNELS: Final = {
    "multiply": """
@function(kernel=1)
def multiply(t0: buffer("global@1", i32[n]), p1: buffer("global@1", i32[1]), n: i64):
    for i in bound(0, (n + 31) // 32, thread="blockIdx.x"):
        for j in bound(0, 32, thread="threadIdx.x"):
            if i * 32 + j < n:
                t0[i * 32 + j] = t0[i * 32 + j] * p1[0]
""",
    "negate": """
def negate(p0: i32[n], t0: i32[n], n: i64):
    for i in range(0, n):
        t0[i] = i32(0) - p0[i]
""",
}


def parsed(kernels: dict[str, str]) -> dict[str, Program]:
    """Returns the programs of kernels."""
    return {name: parse_program(text) for name, text in kernels.items()}
