"""Kernels for CUDA have no race, with the tiles that the rules choose for layers of full size: one block at a time is run."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import onnx
import pytest
from tests.driver.device.test_random_shapes import DRAWS, model, node

from weft.cli.demo_models import resnet18
from weft.codegen.cuda import backend
from weft.codegen.cuda.nvrtc import Cubin
from weft.codegen.interp.threads import check_block, kernels_of
from weft.driver.build import build
from weft.loop import parse_program
from weft.targets import parse_target

SEEDS = 20


@pytest.fixture(autouse=True)
def without_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are lowered, and not compiled."""
    monkeypatch.setattr(backend, "compile_cubin", lambda *_: Cubin(b"", {}))


def check(source: onnx.ModelProto, target: str) -> None:
    """Checks the first and the last block of each kernel of a model."""
    kernels = [
        k for made in build(source, target, cache=None).kernels.values() for k in kernels_of(parse_program(made.flat))
    ]
    assert kernels
    for kernel in kernels:
        for last in (False, True):
            check_block(kernel, parse_target(target), last=last)


def deconvolution() -> onnx.ModelProto:
    """A layer of DCGAN: 128 channels of 16 x 16 places to 64 of 32 x 32."""
    nodes = [node("ConvTranspose", "x w", "t", strides=[2, 2], pads=[1] * 4), node("Relu", "t", "y")]
    return model(nodes, {"x": (1, 128, 16, 16)}, w=(128, 64, 4, 4))


def convolution(batch: int, channels: int, size: int) -> onnx.ModelProto:
    nodes = [node("Conv", "x w", "y", pads=[1] * 4)]
    return model(nodes, {"x": (batch, channels, size, size)}, w=(channels, channels, 3, 3))


LAYERS: dict[str, Callable[[], onnx.ModelProto]] = {
    "deconvolution": deconvolution,
    "small image": partial(convolution, 1, 256, 14),
    "batch": partial(convolution, 32, 64, 56),
    "product": lambda: model([node("MatMul", "x w", "y")], {"x": (1024, 1024)}, w=(1024, 1024)),
    "one row": lambda: model([node("MatMul", "x w", "y")], {"x": (1, 768)}, w=(768, 3072)),
    "softmax": lambda: model([node("Softmax", "x", "y", axis=-1)], {"x": (4096, 4096)}),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_layers_of_networks(make: Callable[[], onnx.ModelProto]) -> None:
    check(make(), "cuda -arch=sm_90")


@pytest.mark.slow
def test_a_network() -> None:
    check(resnet18(), "cuda -arch=sm_90")


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", sorted(DRAWS.keys() - {"symbolic"}))
def test_random_shapes(name: str, arch: str) -> None:
    for seed in range(SEEDS):
        check(DRAWS[name](random.Random(seed)), f"cuda -arch={arch}")
