"""Fourier transforms of every kind of length against NumPy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from onnx import TensorProto
from tests.frontends.onnx.nodes import Array, float_inputs, floats, imported, model_of, node, single

from weft import backend
from weft.driver.checking.reference import run_graph
from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import ModelError, RuntimeFailure

Kind: TypeAlias = tuple[int, Sequence[int | str | None]]
"""The type of the elements of an input, and its sizes."""

LENGTHS = [1, 2, 7, 96, 360, 1009, 1031]
"""One product; two of them; a prime of one product; a prime that is a convolution."""


def transformed(x: Array, weights: dict[str, Array] | None = None, **attributes: Any) -> Array:
    """Returns the transform along axis 1, as complex numbers; two inputs are the length and the axis."""
    model = single("DFT", {"x": x}, {"n": np.array(0), "axis": np.array(1)} | (weights or {}), 20, **attributes)
    if not weights:
        model.graph.node[0].input[1] = ""
    (made,) = imported(model, {"x": x})[1]
    assert made.dtype == x.dtype
    return np.asarray(made[..., 0] + 1j * made[..., 1] if made.shape[-1] == 2 else made[..., 0])


def complexes(x: Array) -> Array:
    return np.asarray(x[..., 0] + 1j * x[..., 1])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n: int) -> None:
    x = floats(2, n, 2)
    wanted, off = complexes(x.astype(np.float64)), 2e-6 * n
    np.testing.assert_allclose(transformed(x), np.fft.fft(wanted, axis=1), rtol=1e-3, atol=off)
    np.testing.assert_allclose(transformed(x, inverse=1), np.fft.ifft(wanted, axis=1), rtol=1e-3, atol=2e-6)
    half = transformed(x[..., :1], onesided=1)
    np.testing.assert_allclose(half, np.fft.rfft(x[..., 0], axis=1), rtol=1e-3, atol=off)


@pytest.mark.parametrize("n", [6, 7, 360])
def test_real_signals_come_back(n: int) -> None:
    x = floats(3, n, 1, seed=1)
    spectrum = np.fft.rfft(x[..., 0], axis=1)
    given = np.stack([spectrum.real, spectrum.imag], 2).astype(np.float32)
    back = transformed(given, {"n": np.array(n)}, inverse=1, onesided=1)
    np.testing.assert_allclose(back, x[..., 0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [5, 12])
def test_cut_and_filled_signals_of_doubles(n: int) -> None:
    x = floats(2, 9, 2, seed=2).astype(np.float64)
    np.testing.assert_allclose(transformed(x, {"n": np.array(n)}), np.fft.fft(complexes(x), n, axis=1), atol=1e-12)


def test_products_are_of_short_transforms() -> None:
    x = floats(1, 4096, 1)
    graph = imported(single("DFT", {"x": x}, None, 17), {"x": x})[0]
    tables = [v.shape for n in graph.nodes if n.op == "matmul" for v in n.inputs[1:] if v is not None]
    assert {tuple(int(getattr(s, "value", 0)) for s in shape) for shape in tables} == {(64, 64)}


def test_frames_of_complex_signals() -> None:
    x, window = floats(2, 50, 2), np.hanning(16).astype(np.float32)
    weights = {"step": np.array(5), "w": window, "n": np.array(16)}
    (made,) = imported(single("STFT", {"x": x}, weights, onesided=0), {"x": x})[1]
    frames = np.stack([complexes(x)[:, k : k + 16] * window for k in range(0, 35, 5)], 1)
    np.testing.assert_allclose(complexes(made), np.fft.fft(frames), rtol=1e-3, atol=1e-5)


NUMBER: Kind = (TensorProto.INT64, ())


@pytest.mark.parametrize("axis", [1, None])
@pytest.mark.parametrize("inverse", [0, 1])
def test_lengths_that_an_input_says(inverse: int, axis: int | None) -> None:
    """A signal of any length is cut, or filled with zeros, to any other, along an axis that is known or not."""
    inputs: dict[str, Kind] = {"x": (TensorProto.FLOAT, [2, "samples", 2]), "n": NUMBER, "axis": NUMBER}
    weights = {} if axis is None else {"axis": np.array(axis)}
    declared = {name: kind for name, kind in inputs.items() if name not in weights}
    graph = from_onnx(model_of([node("DFT", "x n axis", inverse=inverse)], declared, weights=weights, opset=20))
    by_numpy = np.fft.ifft if inverse else np.fft.fft
    for samples, n in ((9, 5), (9, 9), (4, 9), (6, 1)):
        x = floats(2, samples, 2, seed=n)
        given = {"x": x, "n": np.array(n), "axis": np.array(1)}
        (made,) = run_graph(graph, {v.name: given[v.name] for v in graph.inputs})
        np.testing.assert_allclose(complexes(made), by_numpy(complexes(x), n, axis=1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_given", [True, False])
def test_halves_of_spectra_of_symbolic_lengths(is_given: bool) -> None:
    """The first half of a real signal's spectrum, and the signal of such a half."""
    inputs: dict[str, Kind] = {
        "x": (TensorProto.FLOAT, ["batch", "samples", 1]),
        "n": NUMBER,
        "h": (TensorProto.FLOAT, [1, "half", 2]),
    }
    n_name = "n" if is_given else "-"
    nodes = [
        node("DFT", f"x {n_name} axis", "y", onesided=1),
        node("DFT", f"h {n_name} axis", "z", onesided=1, inverse=1),
    ]
    declared = {name: kind for name, kind in inputs.items() if is_given or name != "n"}
    graph = from_onnx(model_of(nodes, declared, ("y", "z"), {"axis": np.array(1)}, opset=20))
    for samples, n in ((8, 8), (5, 7), (9, 6)):
        x, h = floats(2, samples, 1), floats(1, 5, 2, seed=n)
        given = {"x": x, "n": np.array(n), "h": h}
        y, z = run_graph(graph, {v.name: given[v.name] for v in graph.inputs})
        length = n if is_given else None
        np.testing.assert_allclose(complexes(y), np.fft.rfft(x[..., 0], length, axis=1), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(z[..., 0], np.fft.irfft(complexes(h), length, axis=1), rtol=1e-4, atol=1e-5)


def test_frames_of_signals_of_symbolic_length() -> None:
    window = np.hanning(16).astype(np.float32)
    inputs: dict[str, Kind] = {"x": (TensorProto.FLOAT, ["batch", "samples", 1])}
    graph = from_onnx(model_of([node("STFT", "x step w")], inputs, weights={"step": np.array(5), "w": window}))
    for samples in (16, 50):
        x = floats(2, samples, 1)
        frames = np.stack([x[:, k : k + 16, 0] * window for k in range(0, samples - 15, 5)], 1)
        np.testing.assert_allclose(complexes(run_graph(graph, {"x": x})[0]), np.fft.rfft(frames), rtol=1e-3, atol=1e-5)


def test_a_length_of_nothing_is_refused() -> None:
    inputs: dict[str, Kind] = {"x": (TensorProto.FLOAT, [1, 4, 1]), "n": NUMBER}
    prepared = backend.prepare(model_of([node("DFT", "x n")], inputs, opset=17))
    with pytest.raises(RuntimeFailure, match=r"DFT /y: the length of the transform is 0"):
        prepared.run([floats(1, 4, 1), np.array(0)])


def test_dimensions_that_hold_no_parts() -> None:
    wide = single("DFT", {"x": floats(1, 4, 3)}, None, 17)
    with pytest.raises(ModelError, match="the last dimension of its input should be 1"):
        from_onnx(wide)
    long = model_of([node("DFT", "x n")], float_inputs(x=(1, 4, 1)), weights={"n": np.array(1 << 40)})
    with pytest.raises(
        ModelError, match="the length, 1099511627776, needs a table of 2199023255552 numbers; 268435456 are"
    ):
        from_onnx(long)
    frames = model_of(
        [node("STFT", "x s w")], float_inputs(x=(1, 1 << 31, 1)), weights={"s": np.array(1), "w": floats(8)}
    )
    with pytest.raises(ModelError, match="STFT /y: 2147483641 frames of 8 elements need a table of"):
        from_onnx(frames)
    short = single("STFT", {"x": floats(1, 4, 1)}, {"step": np.array(1), "w": floats(8)})
    with pytest.raises(ModelError, match="frames of 8 elements, 1 apart, do not fit a signal of 4"):
        from_onnx(short)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((1 << 40, 8, 100, 0, 9), "bins for a transform of 8 elements need a table of"),
        ((-2, 8, 100, 0, 9), "it takes none below 0"),
        ((2, 8, 0, 0, 9), "it takes none below 0"),
        ((2, 8, 100, -1000, 9), "its filters reach from nan to nan, beyond 5 frequencies"),
        ((2, 8, 100, 0, 900), "its filters reach from 0 to"),
    ],
)
def test_filters_that_are_none(numbers: tuple[int, ...], said: str) -> None:
    weights = {f"w{k}": np.array(n, np.int64 if k < 3 else np.float32) for k, n in enumerate(numbers)}
    with pytest.raises(ModelError, match=f"MelWeightMatrix /y: .*{said}"):
        from_onnx(single("MelWeightMatrix", {}, weights))
