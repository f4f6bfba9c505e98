"""Products of 16-bit floats by groups of warps: right thread by thread, in the instructions, and where a rule takes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ml_dtypes import bfloat16
from onnx import ModelProto, TensorProto, helper
from tests.lower.expanding import expand_instructions
from tests.lower.threaded import run_case
from tests.runtime.devices.fake_driver import FakeDriver
from tests.schedule.programs import Case
from tests.schedule.rules.grid.test_fragment_tiles import product, taking
from tests.support.devices import needs_nvrtc

import weft
from weft.codegen.cuda.backend import BACKEND
from weft.codegen.cuda.cuda_kernels import code_arch, whole_source
from weft.codegen.cuda.nvrtc import compile_cubin
from weft.codegen.cuda.warpgroups import form_warpgroups
from weft.cost import (
    ByteFragments,
    Candidate,
    FloatProduct,
    FragmentProduct,
    FragmentTile,
    RoundedFactors,
    fragment_tile_plans,
    rounded_factor_plans,
)
from weft.graph.passes.quantized import choose_dot_products
from weft.graph.passes.rounded import tf32_factors
from weft.loop import Program, parse_program
from weft.lower import lower
from weft.schedule import schedule_program
from weft.schedule.rules.grid import fragment_tiles
from weft.support.dtypes import DType, bf16, u32
from weft.support.errors import LoweringError
from weft.targets.cuda_machines import cuda

SM_90 = cuda("sm_90")
SMALLEST = FragmentTile(4, 1, 8, 4, 1, 4, 2)
"""64 x 64 sums of a group, 64 terms at a time."""


def lowered(made: Case, tile: FragmentTile = SMALLEST) -> Program:
    flat = lower(schedule_program(made.program, SM_90, taking(tile)).program, SM_90, verify=True)
    assert "cuda.wgmma" in str(flat)
    return flat


def instructions(flat: Program) -> Program:
    for _, change in BACKEND.passes(SM_90):
        flat = change(flat, SM_90)
    return flat


@pytest.mark.parametrize(
    "transposed",
    [pytest.param(False, id="rows of columns"), pytest.param(True, id="rows of terms", marks=pytest.mark.slow)],
)
def test_thread_by_thread(*, transposed: bool) -> None:
    made = product(64, 64, 64, transposed=transposed)
    run_case(made, expand_instructions(lowered(made)), SM_90)


@pytest.mark.slow
def test_thread_by_thread_in_parts() -> None:
    flat = lowered(product(64, 64, 256), replace(SMALLEST, parts=2))
    run_case(product(64, 64, 256), expand_instructions(flat), SM_90)


@pytest.mark.parametrize(("terms", "is_split"), [(768, True), (3072, True), (64, False)])
def test_terms_are_split_where_multiprocessors_would_be_idle(terms: int, *, is_split: bool) -> None:
    few = FragmentProduct(128, 768, 1, terms, terms)
    best = min(fragment_tile_plans(few, SM_90), key=lambda c: c.cycles).decision
    assert (best.parts > 1) == is_split
    many = replace(few, rows=4096)
    assert min(fragment_tile_plans(many, SM_90), key=lambda c: c.cycles).decision.parts == 1


@pytest.mark.slow
def test_thread_by_thread_in_several_steps() -> None:
    made = product(64, 64, 256, bf16)
    assert run_case(made, expand_instructions(lowered(made)), SM_90).barriers == 4


def model(kind: int, m: int, k: int, n: int, *, transposed: bool) -> ModelProto:
    shapes = {"x": [m, k], "w": [n, k] if transposed else [k, n], "b": [n]}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["s"])]
    if transposed:
        nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["s"], transB=1)]
    nodes.append(helper.make_node("Relu", ["s"], ["y"]))
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", kind, [m, n])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("tile", "sizes"),
    [
        (SMALLEST, (128, 384, 128)),
        (FragmentTile(8, 1, 16, 4, 1, 3, 1), (256, 128, 128)),
        (FragmentTile(4, 1, 16, 4, 1, 3, 2), (64, 64, 256)),
        (FragmentTile(8, 1, 16, 4, 1, 3, 1, 2), (256, 128, 128)),
        (FragmentTile(4, 1, 8, 4, 2, 4, 2, 1), (256, 64, 128)),
        pytest.param(FragmentTile(8, 1, 32, 4, 1, 4, 2), (128, 256, 256), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("transposed", [False, True], ids=["rows of columns", "rows of terms"])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16], ids=["f16", "bf16"])
def test_instructions_compute_what_the_manual_says(
    tile: FragmentTile,
    sizes: tuple[int, int, int],
    *,
    transposed: bool,
    kind: int,
    driver: FakeDriver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        fragment_tiles, "fragment_tile_plans", lambda *_: [Candidate(FragmentTile(), 2.0), Candidate(tile, 1.0)]
    )
    m, k, n = sizes
    made = weft.compile(model(kind, m, k, n, transposed=transposed), target="cuda -arch=sm_90", cache=False)
    rng, dtype = np.random.default_rng(0), np.float16 if kind == TensorProto.FLOAT16 else bfloat16
    x, w, b = [rng.standard_normal(s).astype(dtype) for s in ((m, k), (n, k) if transposed else (k, n), (n,))]
    found = np.asarray(made(x, w, b)).astype(np.float32)
    expected = (x.astype(np.float32) @ (w.T if transposed else w).astype(np.float32) + b.astype(np.float32)).clip(0)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-3 if dtype is np.float16 else 8e-3)
    shared = (tile.warps * 16 + tile.columns * 8) * 128 * tile.copies
    assert f"cuFuncSetAttribute 8 {shared}" in driver.calls()


def test_columns_that_are_no_power_of_two() -> None:
    flat = lowered(product(64, 192, 128, transposed=True), FragmentTile(4, 1, 24, 4, 1, 4, 2))
    assert ", 192, 0, 1024)" in str(form_warpgroups(flat, SM_90))


@needs_nvrtc
@pytest.mark.parametrize("transposed", [False, True], ids=["rows of columns", "rows of terms"])
def test_machine_code(*, transposed: bool) -> None:
    made = product(256, 512, 512, bf16, transposed=transposed)
    flat = instructions(lowered(made, FragmentTile(8, 1, 32, 4, 1, 4, 2)))
    source = BACKEND.write(flat, SM_90)
    (taken,) = compile_cubin(whole_source(source), code_arch(SM_90)).resources.values()
    assert taken.spills == taken.stack == 0
    assert taken.registers <= 255


def test_the_fastest_is_taken_where_tiles_are_whole() -> None:
    def best(m: int, n: int, k: int, arch: str = "sm_90", result_bytes: int = 4) -> FragmentTile:
        product = FragmentProduct(m, n, 1, k, k, bf16, result_bytes)
        return min(fragment_tile_plans(product, cuda(arch)), key=lambda c: c.cycles).decision

    assert replace(best(4096, 4096, 4096), copies=4, ahead=2) == FragmentTile(8, 1, 32, 4, 8, 4, 2)
    assert best(4096, 4096, 4096, "sm_80").copies == 1
    assert best(4096, 4096, 4128).copies == 1  # the terms are no whole rows of swizzled memory
    assert best(4096, 4096, 4128).warps > 0
    assert best(4096, 4096, 4096, result_bytes=2) == FragmentTile(8, 1, 32, 4, 8, 4, 2, 2)
    assert best(1024, 1024, 1024, result_bytes=2) == FragmentTile(4, 1, 16, 4, 8, 8, 6, 1)
    assert best(4100, 4096, 4096).warps == 0


KERNEL = """
@function(kernel=1)
def f(x: f16[4096]):
    for b in bound(0, 1, thread="blockIdx.x"):
        A = alloc("swizzled", f16[8192])
        B = alloc("swizzled", f16[8192])
        for tz in bound(0, {warps}, thread="threadIdx.z"):
            for ty in bound(0, 8, thread="threadIdx.y"):
                for tx in bound(0, 4, thread="threadIdx.x"):
                    P = alloc("register", f32[{sums}])
                    {before}
                    if {condition}:
                        for s in unrolled(0, 4):
                            for j in unrolled(0, {count}):
                                call("cuda.wgmma_f16", P.at({p}), A.at({a}), B.at({b}), 2, {ta}, 1, {tb}, {ub})
                        call("weft.barrier")
"""
RIGHT = {
    "warps": "4",
    "sums": "64",
    "before": 'call("weft.barrier")',
    "condition": "b == 0",
    "count": "16",
    "p": "j * 4",
    "a": "s * 16 + tz * 1024 + ty * 64",
    "b": "j // 8 * 4096 + j % 8 * 8 + s * 1024 + tx * 2",
    "ta": "512",
    "tb": "64",
    "ub": "1",
}


def kernel(**change: str) -> Program:
    return parse_program(KERNEL.format(**{**RIGHT, **change}))


def test_an_instruction_of_a_group() -> None:
    found = str(form_warpgroups(kernel(warps="8"), SM_90))
    assert (
        'call("cuda.group.product_f16", P.at(0), A.at(tz // 4 * 4096 + s * 16), B.at(s * 1024), 128, 1, 8192)' in found
    )
    assert found.index("cuda.group.begin") < found.index("product_f16") < found.index("cuda.group.commit")
    assert 'call("cuda.group.wait", 0, P.at(0), 128)' in found


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"condition": "ty < 4"}, "is under a condition that only some threads of a warp may meet"),
        ({"warps": "2"}, "is not made by groups of 4 warps of 4 x 8 threads along x and y"),
        ({"count": "15"}, "is made for 120 columns, not (64, 128, 192, 256)"),
        ({"p": "j * 2"}, "adds to sums that are not all those of a thread"),
        ({"ta": "64"}, "has a left factor whose rows are not 8 rows of swizzled memory apart"),
        ({"a": "s * 16 + tz * 1024 + ty * 128"}, "has rows of other threads"),
        ({"a": "s * 16 + tz * 1024 + ty * 64 + 64"}, "takes terms of A from a row on that does not begin a part of 8"),
        ({"a": "s * 32 + tz * 1024 + ty * 64"}, "takes terms of A from a row on that does not begin a part of 8"),
        ({"tb": "32"}, "has a right factor whose rows are not those of swizzled memory"),
        ({"b": "j * 8 + s * 1024 + tx * 4"}, "has columns of other threads"),
        ({"b": "j * 16 + s * 1024 + tx * 2"}, "has columns that do not lie one after another"),
    ],
)
def test_what_a_group_would_not_compute(change: dict[str, str], told: str) -> None:
    with pytest.raises(LoweringError) as error:
        form_warpgroups(kernel(**change), SM_90)
    assert str(error.value) == (
        f"f: cuda.wgmma_f16 {told}\n  hint: schedule it as `schedule/rules/grid/fragment_tiles.py` does"
    )


@pytest.mark.parametrize("before", ["A[tx] = x[tx]", "x[tx] = A[tx]"])
def test_swizzled_memory_is_for_instructions(before: str) -> None:
    with pytest.raises(LoweringError, match="A is in swizzled memory, which threads copy to in pieces"):
        form_warpgroups(kernel(before=before), SM_90)


def bytes_model(m: int, k: int, n: int, *, transposed: bool, kind: int = TensorProto.INT8) -> ModelProto:
    turn = [helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0])] if transposed else []
    nodes = [*turn, helper.make_node("MatMulInteger", ["x", "t" if transposed else "w", "z"], ["y"])]
    shapes = {"x": ([m, k], kind), "w": ([n, k] if transposed else [k, n], TensorProto.INT8), "z": ([], kind)}
    inputs = [helper.make_tensor_value_info(name, t, shape) for name, (shape, t) in shapes.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.INT32, [m, n])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


@pytest.mark.parametrize("factors", [bf16, u32], ids=str)
@pytest.mark.parametrize(("depth", "columns"), [(768, 768), (3072, 768), (768, 3072)])
def test_products_of_few_rows_are_rounded(depth: int, columns: int, factors: DType) -> None:
    found = rounded_factor_plans(FloatProduct(128, depth, columns), SM_90, factors)
    assert found[0].decision.rounded


@pytest.mark.parametrize(("transposed", "parts"), [(False, 1), (True, 1), (False, 3)])
def test_tf32(*, transposed: bool, parts: int, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    forms = [Candidate(RoundedFactors(rounded=True), 1.0)]
    monkeypatch.setattr(tf32_factors, "rounded_factor_plans", lambda *_, **__: forms)
    tiles = [Candidate(FragmentTile(), 2.0), Candidate(replace(SMALLEST, parts=parts), 1.0)]
    monkeypatch.setattr(fragment_tiles, "fragment_tile_plans", lambda *_: tiles)
    m, k, n = 64, 96, 128
    built = model(TensorProto.FLOAT, m, k, n, transposed=transposed)
    made = weft.compile(built, target="cuda -arch=sm_90", precision="tf32", cache=False)
    rng = np.random.default_rng(0)
    x, w, b = [rng.standard_normal(s, np.float32) for s in ((m, k), (n, k) if transposed else (k, n), (n,))]

    def rounded(v: np.ndarray) -> np.ndarray:
        bits = v.view(np.uint32)
        return ((bits + np.uint32(0xFFF) + (bits >> 13 & 1)) & np.uint32(0xFFFFE000)).view(np.float32)

    found = np.asarray(made(x, w, b))
    expected = (rounded(x) @ (rounded(w).T if transposed else rounded(w)) + b).clip(0)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert f"cuFuncSetAttribute 8 {(64 + 64) * 128 * SMALLEST.copies}" in driver.calls()


@pytest.mark.parametrize("transposed", [False, True], ids=["rows of columns", "rows of terms"])
@pytest.mark.parametrize("kind", [TensorProto.INT8, TensorProto.UINT8], ids=["i8", "u8"])
def test_bytes(*, transposed: bool, kind: int, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    forms = [Candidate(ByteFragments(multiplied=True), 1.0)]
    monkeypatch.setattr(choose_dot_products, "byte_fragment_plans", lambda *_: forms)
    tiles = [Candidate(FragmentTile(), 2.0), Candidate(SMALLEST, 1.0)]
    monkeypatch.setattr(fragment_tiles, "fragment_tile_plans", lambda *_: tiles)
    m, k, n = 64, 256, 128
    made = weft.compile(bytes_model(m, k, n, transposed=transposed, kind=kind), target="cuda -arch=sm_90", cache=False)
    rng, dtype = np.random.default_rng(0), np.dtype(np.int8 if kind == TensorProto.INT8 else np.uint8)
    x = rng.integers(-128, 128, (m, k)).astype(np.int8).view(dtype)
    w = rng.integers(-128, 128, (n, k) if transposed else (k, n)).astype(np.int8)
    expected = (x.astype(np.int64) - 3) @ (w.T if transposed else w).astype(np.int64)
    np.testing.assert_array_equal(np.asarray(made(x, w, np.asarray(3, dtype))), expected)
    assert (
        f"cuFuncSetAttribute 8 {(64 + 64) * 128 * SMALLEST.copies}" in driver.calls()
    )  # the factors are in swizzled memory
