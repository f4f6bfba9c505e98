"""Indices are computed in 32 bits where they are proven to fit, and nowhere else."""

from __future__ import annotations

from weft.loop import parse_program
from weft.lower.grid.narrow_indices import narrow_indices
from weft.targets.cuda_machines import cuda
from weft.targets.grid_machines import GENERIC_THREADS, METAL, OPENCL, WEBGPU

HEAD = "@function(kernel=1)\ndef f({params}):\n"
GRID = '    for b in bound(0, {blocks}, thread="blockIdx.x"):\n        for t in bound(0, 256, thread="threadIdx.x"):\n'


def narrowed(params: str, blocks: str, *lines: str) -> str:
    """Returns the body of a kernel after the pass, without its first lines, the indentation and the words for casts."""
    text = HEAD.format(params=params) + GRID.format(blocks=blocks) + "".join([f"            {s}\n" for s in lines])
    return "\n".join([s.strip() for s in str(narrow_indices(parse_program(text), WEBGPU)).strip().splitlines()[2:]])


def test_a_constant_size() -> None:
    assert narrowed("x: f32[25600]", "100", "x[b * 256 + t] = 0.0") == (
        'for b in bound(0, 100, thread="blockIdx.x"):\n'
        'for t in bound(0, 256, thread="threadIdx.x"):\n'
        "x[i64(i32(b) * i32(256) + i32(t))] = 0.0"
    )


def test_a_size_is_limited_by_the_largest_buffer() -> None:
    made = narrowed(
        "x: f32[n * 96], n: i64", "(n * 96 + 255) // 256", "if b * 256 + t < n * 96:", "    x[b * 256 + t] = 0.0"
    )
    assert 'bound(0, i64((i32(n) * i32(96) + i32(255)) // i32(256)), thread="blockIdx.x")' in made
    assert "if i32(b) * i32(256) + i32(t) < i32(n) * i32(96):" in made


def test_a_number_without_limits_stays() -> None:
    made = narrowed("x: f32[25600], n: i64", "100", "if b * 256 + t < n * 96:", "    x[b * 256 + t] = 0.0")
    assert "if i64(i32(b) * i32(256) + i32(t)) < n * 96:" in made


def test_what_memory_holds_is_cut_off_where_it_is_clamped() -> None:
    made = narrowed("x: f32[25600], y: f32[10], i: i64[1]", "100", "x[b * 256 + t] = y[min(max(i[0], 0), 9)]")
    assert made.endswith("= y[i64(i32(min(max(i[0], 0), 9)))]")


def test_a_product_that_may_not_fit() -> None:
    made = narrowed("x: i64[25600]", "100", "x[b * 256 + t] = (b * 256 + t) * (b * 256 + t) * 1000")
    assert made.endswith("= i64((i32(b) * i32(256) + i32(t)) * (i32(b) * i32(256) + i32(t))) * 1000")


def test_a_loop_whose_end_does_not_fit() -> None:
    made = narrowed("x: f32[25600]", "100", "for k in range(2147483640, 8):", "    x[k - 2147483640] = 0.0")
    assert "for k in range(2147483640, 8):" in made


def test_targets_with_fast_indices_of_64_bits() -> None:
    program = parse_program(
        HEAD.format(params="x: f32[256]") + GRID.format(blocks="1") + "            x[b + t] = 0.0\n"
    )
    for target in (GENERIC_THREADS, cuda("sm_90")):
        assert narrow_indices(program, target) is program
    for target in (OPENCL, METAL):
        assert narrow_indices(program, target) is not program
