"""Compiling a kernel costs as its LLVM IR is long: that of a 3 x 3 convolution and of a matrix product stays short."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.replay.machines import MACHINES

from weft.cli.onnx_builder import GraphBuilder, conv, gemm
from weft.driver.build import fuse_graph, kernel_requests, optimize_graph, values_in_place
from weft.driver.kernel import lower_kernel
from weft.driver.options import CompileOptions
from weft.frontends import to_graph


def convolution() -> GraphBuilder:
    """128 channels on 28 x 28 places: C6 of the TVM paper."""
    g = GraphBuilder("C6")
    g.output(conv(g, g.input("x", (1, 128, 28, 28)), (128, 128), 3, 1, padding=1), "y")
    return g


def product() -> GraphBuilder:
    g = GraphBuilder("product")
    g.output(gemm(g, g.input("x", (512, 512)), (512, 512)), "y")
    return g


def largest_text(g: GraphBuilder) -> str:
    """Returns the LLVM IR of the kernel that has the multiplications; convolutions are computed by no other algorithm."""
    target, options = MACHINES["avx512"], CompileOptions(precision="strict")
    fused = fuse_graph(optimize_graph(to_graph(g.model()), target, options, None), target, options)
    requests = kernel_requests(fused, options, values_in_place(fused, options, target)).values()
    return max([lower_kernel(r, target).source.text for r in requests], key=len)


@pytest.mark.parametrize(("model", "lines", "size"), [(convolution, 1650, 104_000), (product, 215, 10_000)])
def test_texts_stay_short(model: Callable[[], GraphBuilder], lines: int, size: int) -> None:
    """With registers in memory, as stores and loads, they have 1900 and 240 lines."""
    text = largest_text(model())
    assert text.count("fmul contract") >= 8
    assert text.count("\n") <= lines
    assert len(text) <= size
