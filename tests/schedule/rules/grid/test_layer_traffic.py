"""Layers of networks at full size, in the tiles that the rules choose: what blocks fetch is near the least that they could.

A block needs each sector that it touches between two barriers once, of weights and of activations; of padded images, rows that do
not begin at a sector cost a few more. Three blocks of each kernel are run: the first, one in the middle, and the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np
import onnx
import pytest
from tests.driver.device.test_random_shapes import model, node
from tests.support.grid.least_traffic import LeastTraffic

from weft.codegen.cuda import backend
from weft.codegen.cuda.nvrtc import Cubin
from weft.codegen.interp.threads import Counters, kernels_of, run_threads
from weft.driver.build import build
from weft.ir import ONE, Const, const
from weft.loop import (
    ASYNC_COMMIT,
    BARRIER,
    Buffer,
    Call,
    For,
    Function,
    LoopKind,
    Program,
    Stmt,
    Thread,
    find_note,
    map_stmts,
    parse_program,
    statements,
)
from weft.targets import parse_target

MOST = 1.1
"""Times the least."""

PLACES = (0, 0.5, 1)
"""Where along each axis of the grid the blocks lie that are run."""


def convolution(channels: int, size: int) -> onnx.ModelProto:
    """A padded convolution of 3 x 3 and a ReLU: C2, C6 and C9 of the TVM paper (OSDI 2018, table 2)."""
    nodes = [node("Conv", "x w b", "c", pads=[1] * 4), node("Relu", "c", "y")]
    return model(nodes, {"x": (1, channels, size, size)}, w=(channels, channels, 3, 3), b=(channels,))


LAYERS: dict[str, Callable[[], onnx.ModelProto]] = {
    "C2": partial(convolution, 64, 56),
    "C6": partial(convolution, 128, 28),
    "C9": partial(convolution, 256, 14),
    "GEMM 512": lambda: model([node("MatMul", "x w", "y")], {"x": (512, 512), "w": (512, 512)}),
    "softmax": lambda: model([node("Softmax", "x", "y", axis=-1)], {"x": (256, 1000)}),
}
TARGETS = ("opencl -device=any", "cuda -arch=sm_90")


def one_block(kernel: Function, place: float) -> Program:
    """Returns a kernel of which one block is left."""

    def change(s: Stmt) -> Stmt | None:
        note = find_note(s.notes, Thread) if isinstance(s, For) else None
        if note is None or not isinstance(s, For) or not note.axis.startswith("blockIdx"):
            return None
        assert isinstance(s.extent, Const)
        at = int((int(s.extent.value) - 1) * place)
        return For(s.var, const(at, s.extent.dtype), ONE, s.kind, s.body, s.notes)

    return Program((kernel.with_body(map_stmts(kernel.body, change)),))


def run(kernel: Function, target: str, patch: pytest.MonkeyPatch) -> tuple[Counters, Counter[str], Counter[str]]:
    """Returns the counters of the last block, the sectors that all three move of each buffer, and the least."""
    moved = Counter[str]()
    with patch.context() as within:
        least = LeastTraffic(within)
        for place in PLACES:
            given = {
                p.name: np.zeros([int(n.value) for n in p.shape if isinstance(n, Const)], p.dtype.numpy)
                for p in kernel.params
                if isinstance(p, Buffer)
            }
            found = run_threads(one_block(kernel, place), given, parse_target(target), kernel.name)
            assert (found.conflicts, found.ways in (0, 1)) == (0, True)
            moved += found.of_buffer
        return found, moved, least.of_buffer()


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, marks=() if name == "softmax" else pytest.mark.slow)
        for name in LAYERS
        for target in TARGETS
    ],
)
def test_blocks_fetch_what_their_tile_needs(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "compile_cubin", lambda *_: Cubin(b"", {}))
    for made in build(LAYERS[name](), target, cache=None).kernels.values():
        for kernel in kernels_of(parse_program(made.flat)):
            found, moved, least = run(kernel, target, monkeypatch)
            assert moved.total() <= MOST * least.total(), f"{kernel.name}: {moved}, at least {least}"
            assert found.barriers <= most_barriers(kernel), kernel.name


def most_barriers(kernel: Function) -> int:
    """Returns the barriers that a block needs at most: for each part of its factors, and one where groups add their sums.

    A part needs one where copies run ahead, else one before and one behind the products. A row of softmax has two reductions, for
    each of which its threads wait twice.
    """
    calls = {s.callee for s in statements(kernel.body) if isinstance(s, Call)}
    loops = [s for s in statements(kernel.body) if isinstance(s, For) and s.kind is not LoopKind.BOUND]
    extents = [s.extent for s in loops if any(isinstance(x, Call) and x.callee == BARRIER for x in statements(s.body))]
    parts = [int(n.value) for n in extents if isinstance(n, Const)]
    return (1 if ASYNC_COMMIT in calls else 2) * prod(parts) + 1 if parts else 4
