"""Transposed convolutions by phases, directly and by Winograd's method, over random attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from tests.ops.naive import Array, blocks, conv_transpose
from tests.support.sampling import tried

from weft.driver.checking.reference import run_operator
from weft.ops import matrices
from weft.ops.convolutions.cook_toom import finite_points


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(op: str, *inputs: Array | None, **attributes: Any) -> Array:
    (made,) = run_operator(op, inputs, **attributes)
    return made


@dataclass(frozen=True)
class Case:
    """A transposed convolution in two dimensions, and what it computes."""

    sizes: tuple[int, int]
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    extra: tuple[int, int]
    bias: bool

    def operands(self, channels: int = 8, made: int = 8) -> tuple[Array, Array, Array | None]:
        x, w = floats(2, channels, *self.sizes), floats(channels, made, *self.kernel, seed=1)
        return x, w, floats(made, seed=2) if self.bias else None

    def wanted(self, x: Array, w: Array, b: Array | None) -> Array:
        return conv_transpose(x, w, b, self.strides, self.pads, (1, 1), 1, self.extra)

    @property
    def how(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "strides": self.strides, "pads": self.pads, "output_padding": self.extra}


@st.composite
def cases(draw: Any, *, taps: int | None = None) -> Case:
    """Draws any transposed convolution, or one whose phases have so many *taps* in each dimension."""

    def pair(low: int, high: int) -> tuple[int, int]:
        return draw(st.integers(low, high)), draw(st.integers(low, high))

    strides, sizes, before, after = pair(1, 3), pair(1, 5), pair(0, 2), pair(0, 2)
    y, x = [(1, 5) if taps is None else ((taps - 1) * s + 1, taps * s) for s in strides]
    kernel = draw(st.integers(*y)), draw(st.integers(*x))
    extra = draw(st.integers(0, strides[0] - 1)), draw(st.integers(0, strides[1] - 1))
    dims = zip(sizes, strides, kernel, extra, before, after, strict=True)
    assume(all((n - 1) * s + k + e - p - q > 0 for n, s, k, e, p, q in dims))
    return Case(sizes, kernel, strides, (*before, *after), extra, draw(st.booleans()))


@tried(10, 40, cases(), st.sampled_from([(8, 8), (6, 5)]))
def test_phases_in_channel_blocks(case: Case, channels: tuple[int, int]) -> None:
    x, w, b = case.operands(*channels)
    packed = run("pack_conv_transpose_weight", w, in_block=4, out_block=4, strides=case.strides)
    y = run("conv_transpose2d_blocked", blocks(x, 1, 4), packed, None if b is None else blocks(b, 0, 4), **case.how)
    close(run("unpack_channels", y, channels=channels[1]), case.wanted(x, w, b))


@tried(8, 30, st.data(), st.integers(2, 3), st.integers(2, 4), st.sampled_from([4, 8]))
def test_winograd_by_phases(data: st.DataObject, taps: int, tile: int, panel: int) -> None:
    case = data.draw(cases(taps=taps))
    x, w, b = case.operands()
    u = run("pack_transposed_winograd_weight", w, tile=tile, taps=taps, block=panel, strides=case.strides)
    y = run(
        "conv_transpose2d_winograd",
        blocks(x, 1, 4),
        u,
        None if b is None else blocks(b, 0, 4),
        tile=tile,
        channels=8,
        **case.how,
    )
    close(run("unpack_channels", y, channels=8), case.wanted(x, w, b))


def close(a: Array, b: Array) -> None:
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_panels_are_filled_up_with_zeros() -> None:
    u = run("pack_transposed_winograd_weight", floats(3, 5, 4, 4), tile=2, taps=2, block=4, strides=(2, 2))
    assert u.shape == (2, 2, 3, 3, 2, 3, 4)
    assert not u[:, :, :, :, 1, :, 1:].any()


@pytest.mark.parametrize(("count", "wanted"), [(2, [0.0, 1.0]), (3, [0.0, 1.0, -1.0])])
def test_few_points_need_no_multiplications(count: int, wanted: list[float]) -> None:
    assert finite_points(count) == wanted
    b, _, a = matrices(count, 2)
    assert {abs(v) for row in (*b, *a) for v in row} <= {0.0, 0.5, 1.0}
