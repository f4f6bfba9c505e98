"""Tensor instructions are run by the interpreter of threads as the loops that declare them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from weft.codegen.cuda import backend
from weft.codegen.cuda.nvrtc import Cubin
from weft.codegen.interp.threads.thread_machine import run_threads
from weft.driver.build import build
from weft.loop import parse_program
from weft.targets import parse_target


def product(rows: int, terms: int, columns: int) -> onnx.ModelProto:
    """Returns the product of two inputs of bfloat16: `x` [rows, terms] by `w` [terms, columns]."""
    kind, shapes = TensorProto.BFLOAT16, {"x": (rows, terms), "w": (terms, columns)}
    inputs = [helper.make_tensor_value_info(n, kind, s) for n, s in shapes.items()]
    y = helper.make_tensor_value_info("y", kind, (rows, columns))
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "product", inputs, [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(("arch", "instruction"), [("sm_80", "warp.mma_bf16"), ("sm_90", "cuda.wgmma_bf16")])
def test_products_of_threads_together(arch: str, instruction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "compile_cubin", lambda *_: Cubin(b"", {}))
    target = f"cuda -arch={arch}"
    (kernel,) = build(product(64, 64, 64), target, cache=None).kernels.values()
    assert instruction in kernel.flat
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal((64, 64)).astype(ml_dtypes.bfloat16) for _ in range(2))
    y = np.zeros(64 * 64, ml_dtypes.bfloat16)
    run_threads(parse_program(kernel.flat), [x.reshape(-1), w.reshape(-1), y], parse_target(target))
    expected = x.astype(np.float32) @ w.astype(np.float32)
    np.testing.assert_allclose(y.reshape(64, 64).astype(np.float32), expected, rtol=1e-2, atol=1e-2)
