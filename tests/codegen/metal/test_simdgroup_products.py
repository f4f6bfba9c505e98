"""Products of matrices by simdgroups: right thread by thread, compiled as Apple's compiler takes them, and run by the shim."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.lower.expanding import expand_instructions
from tests.lower.threaded import run_case
from tests.schedule.rules.grid.test_fragment_tiles import product, taking
from tests.support.devices import needs_clang
from tests.support.metal.metal_shim import HostMetal, check_text, use_metal_shim

import weft
from weft.codegen import SourceCode, backend_of, compile_program, link
from weft.cost import FragmentTile
from weft.loop import Program, parse_program
from weft.lower import lower
from weft.runtime.devices import Argument
from weft.schedule import schedule_program
from weft.support.dtypes import DType, bf16, f16, f32
from weft.targets.grid_machines import METAL

ROWS, COLUMNS, DEPTH = 64, 32, 64
TILE = FragmentTile(2, 2, 4, 2)
"""One block of two simdgroups."""


def lowered(dtype: DType) -> Program:
    program = schedule_program(product(ROWS, COLUMNS, DEPTH, dtype).program, METAL, taking(TILE)).program
    flat = lower(program, METAL, verify=True)
    assert f"warp.mma_{dtype}" in str(flat)
    return flat


def checked(program: Program) -> Program:
    """The program as the backend's own passes leave it."""
    for _, rewrite in backend_of(METAL).passes(METAL):
        program = rewrite(program, METAL)
    return program


@pytest.mark.parametrize("dtype", [f32, f16, bf16], ids=str)
def test_thread_by_thread(dtype: DType) -> None:
    counted = run_case(product(ROWS, COLUMNS, DEPTH, dtype), expand_instructions(lowered(dtype)), METAL)
    assert counted.ways <= dtype.bytes // 2  # pairs of float32 are of two banks, and read one after the other


@needs_clang
@pytest.mark.parametrize("dtype", [f32, f16, bf16], ids=str)
def test_by_simdgroups(dtype: DType) -> None:
    made = link([compile_program(checked(lowered(dtype)), METAL)], METAL)
    assert isinstance(made, SourceCode)
    assert "simdgroup_multiply_accumulate(sums, left, right, sums)" in made.text
    check_text(made.text)
    rng = np.random.default_rng(3)
    a, b = [rng.standard_normal(shape).astype(dtype.numpy) for shape in ((ROWS, DEPTH), (DEPTH, COLUMNS))]
    y, c = np.zeros((ROWS, COLUMNS), np.float32), rng.standard_normal(COLUMNS).astype(np.float32)
    device = HostMetal(made.text, list(made.symbols.values()))
    blocks = [device.alloc(x.nbytes) for x in (a, b, y, c)]
    for block, x in zip(blocks, (a, b, y, c), strict=True):
        device.write(block, 0, x.ctypes.data, x.nbytes)
    device.launch(0, (1, 1, 1, 4, 8, TILE.warps), [Argument(block, 0) for block in blocks])
    device.read(blocks[2], 0, y.ctypes.data, y.nbytes)
    device.close()
    wanted = (a.astype(np.float32) @ b.astype(np.float32) + c).clip(0)
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)


SHUFFLED = """
@function(kernel=1)
def f(x: f32[32]):
    for b in bound(0, 1, thread="blockIdx.x"):
        A = alloc("shared", f32[1024])
        B = alloc("shared", f32[1024])
        for ty in bound(0, 8, thread="threadIdx.y"):
            for tx in bound(0, 4, thread="threadIdx.x"):
                P = alloc("register", f32[4])
                own = alloc("register", f32[1])
                taken = alloc("register", f32[1])
                own[0] = x[ty * 4 + tx]
                call("weft.shuffle.warp", taken.at(0), own.at(0), 31 - (ty * 4 + tx))
                call("warp.mma_f32", P.at(0), A.at(ty * 72), B.at(tx * 2), 2, 36, 1, 36, 1)
                x[ty * 4 + tx] = taken[0]
"""


def test_shuffles_beside_products_are_of_the_same_threads() -> None:
    made = link([compile_program(checked(parse_program(SHUFFLED)), METAL)], METAL)
    assert isinstance(made, SourceCode)
    device = HostMetal(made.text, list(made.symbols.values()))
    block, x = device.alloc(128), np.arange(32, dtype=np.float32)
    device.write(block, 0, x.ctypes.data, x.nbytes)
    device.launch(0, (1, 1, 1, 4, 8, 1), [Argument(block, 0)])
    device.read(block, 0, x.ctypes.data, x.nbytes)
    device.close()
    np.testing.assert_array_equal(x, np.arange(32)[::-1])


def test_models_of_16_bits_use_them(monkeypatch: pytest.MonkeyPatch) -> None:
    use_metal_shim(monkeypatch)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT16, [64, 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT16, [64, 128])
    w = np.random.default_rng(1).standard_normal((64, 128)).astype(np.float16)
    weights = [onnx.numpy_helper.from_array(w, "w")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    made = weft.compile(model, target="metal", cache=False)
    assert "weft_mma_f16" in weft.build(model, "metal").package.kernel_source
    given = np.random.default_rng(2).standard_normal((64, 64)).astype(np.float16)
    wanted = given.astype(np.float32) @ w.astype(np.float32)
    np.testing.assert_allclose(made.run([given])[0].astype(np.float32), wanted, rtol=2e-3, atol=2e-2)


def test_attention_of_16_bits_uses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the same rule as with CUDA, whose instructions have the same declaration."""
    use_metal_shim(monkeypatch)
    shape = (1, 16, 64, 16)
    q, k, v, y = [helper.make_tensor_value_info(n, TensorProto.FLOAT16, shape) for n in "qkvy"]
    graph = helper.make_graph([helper.make_node("Attention", ["q", "k", "v"], ["y"])], "g", [q, k, v], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    made = weft.compile(model, target="metal", cache=False)
    assert "weft_mma_f16" in weft.build(model, "metal").package.kernel_source
    rng = np.random.default_rng(4)
    given = [rng.standard_normal(shape).astype(np.float16) for _ in "qkv"]
    queries, keys, values = [x.astype(np.float32) for x in given]
    scores = np.exp(queries @ keys.swapaxes(-1, -2) / np.sqrt(shape[-1]))
    wanted = scores / scores.sum(axis=-1, keepdims=True) @ values
    np.testing.assert_allclose(made.run(given)[0].astype(np.float32), wanted, rtol=5e-3, atol=5e-3)
