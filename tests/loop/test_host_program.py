"""The subset of host programs: what it takes, what it refuses and where, and its text."""

from __future__ import annotations

import pytest

from weft.loop import external_module, link_programs, parse_program, print_program, space_of, verify, verify_host
from weft.support.errors import VerifyError, WeftError

DEVICES = """
@function(entry=("main", ("in0", "out0", "in0.0")))
def main(in0: i64[n], out0: f32[n * 4], n: i64):
    count = let(max(in0[0], 0))
    check(count <= n, "{0} of {1}", count, n)
    a = alloc("global@1", f32[n * 4])
    call("weft.copy", a.at(0), out0.at(0), n * 4)
    flag = alloc("global", bool[1])
    flag[0] = 0 < count
    step = alloc("global", i32[1])
    step[0] = i32(0)
    while flag[0]:
        if count % 2 == 0 and i64(step[0]) < n:
            half = view(a, n, f32[n])
            scale(a.at(0), half.at(0), n)
        else:
            add(out0.at(0), select(0 < n, count // n, -count))
        step[0] = i32(i64(step[0]) + 1)
        flag[0] = i64(step[0]) < count
    call("weft.copy", out0.at(0), a.at(0), n * 4)

@function(kernel=1, external="gpu")
def scale(p0: buffer("global@1", f32[n]), t0: buffer("global@1", f32[n]), n: i64):
    for i in bound(0, (n + 31) // 32, thread="blockIdx.x"):
        for j in bound(0, 32, thread="threadIdx.x"):
            pass

@function(external="cpu")
def add(t0: f32[n], n: i64):
    pass
"""


def test_a_host_program_reads_back_and_is_verified() -> None:
    program = parse_program(DEVICES)
    verify_host(program)
    text = print_program(program)
    verify_host(parse_program(text))
    assert print_program(parse_program(text)) == text
    assert [external_module(f) for f in program.functions] == [None, "gpu", "cpu"]
    assert [space_of(p) for p in program["scale"].params[:2]] == [1, 1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "put", "message"),
    [
        ("    count = let(max(in0[0], 0))", "    for i in range(0, 4):\n        pass\n    count = let(1)", "no For"),
        ("scale(a.at(0)", "scale(out0.at(0)", "takes p0 in space 1, but out0 is in space 0"),
        ("add(out0.at(0)", "add(in0.at(0)", "takes f32 for t0, but in0 is i64"),
        ('call("weft.copy", out0.at(0), a.at(0), n * 4)', "out0[0] = a[0]", "a is in the memory of a device"),
        ('call("weft.copy", out0.at(0), a.at(0), n * 4)', "out0[0] = 1.0", "computes no Const of f32|compute with f32"),
        ('call("weft.copy", out0.at(0), a.at(0), n * 4)', "exit(n)", "functions that it declares, .*: exit is none"),
        ("out0.at(0), a.at(0), n * 4", "in0.at(0), a.at(0), n * 4", "a copy is of one type, not from f32 to i64"),
        ("out0.at(0), a.at(0), n * 4", "out0.at(0), n * 4", "takes two addresses"),
        ("i32(i64(step[0]) + 1)", "step[0] + i32(1)", "does not compute `\\+` of i32, only of i64"),
        ("bool[1]", "u64[1]", "a store to flag takes u64"),
        ('alloc("global@1", f32[n * 4])', 'alloc("shared", f32[n * 4])', "a is in shared memory"),
        ("f32[n])\n            scale", 'f32[n], scope="global")\n            scale', "half is in another space than a"),
        ("def add(t0: f32[n], n: i64):\n    pass", "def add(t0: f32[n], n: i64):\n    t0[0] = 1.0", "but has a body"),
        ("            pass\n\n", "            t0[0] = 1.0\n\n", "its loops do something"),
        ("add(t0: f32[n], n: i64)", "add(t0: f32[4], n: i32)", "add takes i32 for n, not i64"),
        (
            "bool[1]",
            "boolx4[1]",
            "flag is of boolx4: a host program's buffers are of scalars|a store to flag takes boolx4",
        ),
        (
            'alloc("global@1", f32[n * 4])',
            'alloc("global@1", f32x4[n])',
            "a copy is of one type|buffers are of scalars",
        ),
        ("add(t0: f32[n]", "add(t0: f32x4[n]", "the parameter t0 is of f32x4"),
        ("p0: buffer", "m: f32, p0: buffer", "scale takes 4 arguments"),
        ("n: i64):\n    pass", "n: i64, m: bool):\n    pass", "add takes 3 arguments"),
        ('external="cpu"', 'external="gpu"', "t0 is in space 0, but scale, .*gpu, takes buffers in space 1"),
        ('t0: buffer("global@1"', 't0: buffer("warp"', "t0 is in warp memory"),
        ('external="cpu"', 'external=""', "a module has a name"),
        ('@function(entry=("main", ("in0", "out0", "in0.0")))\n', "", "main is neither an entry nor declared only"),
    ],
)
def test_what_is_outside_of_the_subset_is_refused(found: str, put: str, message: str) -> None:
    assert found in DEVICES
    with pytest.raises(WeftError, match=message) as told:
        verify_host(parse_program(DEVICES.replace(found, put)))
    assert "\n" in str(told.value)


def test_a_refusal_shows_the_statement() -> None:
    with pytest.raises(VerifyError) as told:
        verify_host(parse_program(DEVICES.replace("scale(a.at(0)", "scale(out0.at(0)")))
    lines = str(told.value).splitlines()
    assert lines[0] == "in main: scale takes p0 in space 1, but out0 is in space 0"
    assert [line.strip() for line in lines if line.endswith("<-- here")] == [
        "scale(out0.at(0), half.at(0), n)  # <-- here"
    ]


def test_linked_functions_keep_apart() -> None:
    host = parse_program(DEVICES)
    add = """
@function(entry_of_no_model=1)
def main(t0: f32[n], n: i64):
    scale(t0.at(0), n)

def scale(t0: f32[n], n: i64):
    t0[0] = f32(n)
"""
    whole = link_programs(host, {"add": parse_program(add)})
    assert [f.name for f in whole.functions] == ["main", "scale", "add", "add.scale"]
    verify(whole, flat=True)
    assert 'call("add.scale", t0.at(0), n)' in str(whole["add"])
