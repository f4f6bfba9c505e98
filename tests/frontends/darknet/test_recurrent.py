"""Darknet's recurrent layers against NumPy: three calls of a compiled model, which keeps the states between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from tests.frontends.darknet.networks import section, text_of
from tests.frontends.darknet.reference import ACTIVATIONS, sigmoid, windows

import weft

Array: TypeAlias = Any
Step: TypeAlias = Callable[..., tuple[Array, ...]]
"""From an input and states to an output and the next states."""


class Weights:
    """Draws the weights of layers in the order in which they are in the file."""

    def __init__(self) -> None:
        self.rng, self.drawn = np.random.default_rng(0), list[Array]()

    def draw(self, *shape: int, low: float = -1.0) -> Array:
        self.drawn.append(self.rng.uniform(low, 1, shape).astype(np.float32))
        return self.drawn[-1]

    def connected(self, inputs: int, outputs: int, *, bn: bool = False) -> Callable[[Array], Array]:
        """Returns a product with a matrix, normalised or not."""
        bias, matrix = self.draw(outputs), self.draw(outputs, inputs)
        if not bn:
            return lambda x: x @ matrix.T + bias
        scale, mean, variance = self.draw(outputs), self.draw(outputs), self.draw(outputs, low=0.5)
        return lambda x: (x @ matrix.T - mean) / np.sqrt(variance + 1e-5) * scale + bias

    def convolution(self, inputs: int, outputs: int) -> Callable[[Array], Array]:
        bias, kernel = self.draw(outputs), self.draw(outputs, inputs, 3, 3)
        flat = kernel.reshape(outputs, inputs, 9)
        return lambda x: np.einsum("nckhw,ock->nohw", windows(x, 3, (1, 1), (1, 1), 0), flat) + bias.reshape(-1, 1, 1)


def elman(w: Weights, logistic: int, *, shortcut: bool, bn: bool) -> Step:
    leaky = ACTIVATIONS["leaky"]
    own = ACTIVATIONS[("leaky", "logistic", "loggy")[logistic]]
    inner, self_, output = w.connected(5, 4, bn=bn), w.connected(4, 4, bn=bn), w.connected(4, 3, bn=bn)

    def step(x: Array, h: Array) -> tuple[Array, ...]:
        h = leaky(inner(x)) + own(self_(h)) + (h if shortcut else 0)
        return leaky(output(h)), h

    return step


def images(w: Weights) -> Step:
    relu = ACTIVATIONS["relu"]
    inner, self_, output = w.convolution(2, 3), w.convolution(3, 3), w.convolution(3, 2)

    def step(x: Array, h: Array) -> tuple[Array, ...]:
        h = relu(inner(x)) + relu(self_(h))
        return relu(output(h)), h

    return step


def gated(w: Weights, function: Callable[[Array], Array]) -> Step:
    xz, xr, xh = (w.connected(5, 4) for _ in range(3))
    hz, hr, hh = (w.connected(4, 4) for _ in range(3))

    def step(x: Array, h: Array) -> tuple[Array, ...]:
        z, r = sigmoid(xz(x) + hz(h)), sigmoid(xr(x) + hr(h))
        h = z * h + (1 - z) * function(xh(x) + hh(r * h))
        return h, h

    return step


def long(w: Weights) -> Step:
    own, inner = [w.connected(4, 4) for _ in range(4)], [w.connected(5, 4) for _ in range(4)]

    def step(x: Array, h: Array, c: Array) -> tuple[Array, ...]:
        f, i, g, o = (a(h) + b(x) for a, b in zip(own, inner, strict=True))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return h, h, c

    return step


VECTORS, VECTOR = {"inputs": 5}, (1, 5)
RNN = {"hidden": 4, "output": 3, "activation": "leaky"}
CASES: dict[str, tuple[Any, dict[str, Any], Callable[[Weights], Step], list[tuple[int, ...]]]] = {
    "rnn": (VECTORS, RNN, lambda w: elman(w, 0, shortcut=False, bn=False), [(1, 4)]),
    "rnn.logistic": (
        VECTORS,
        {**RNN, "logistic": 1, "batch_normalize": 1},
        lambda w: elman(w, 1, shortcut=False, bn=True),
        [(1, 4)],
    ),
    "rnn.loggy": (
        VECTORS,
        {**RNN, "logistic": 2, "shortcut": 1},
        lambda w: elman(w, 2, shortcut=True, bn=False),
        [(1, 4)],
    ),
    "crnn": (
        {"channels": 2, "height": 4, "width": 6},
        {"hidden": 3, "output": 2, "activation": "relu", "pad": 1},
        images,
        [(1, 3, 4, 6)],
    ),
    "gru": (VECTORS, {"output": 4}, lambda w: gated(w, sigmoid), [(1, 4)]),
    "gru.tanh": (VECTORS, {"output": 4, "tanh": 1}, lambda w: gated(w, np.tanh), [(1, 4)]),
    "lstm": (VECTORS, {"output": 4}, long, [(1, 4), (1, 4)]),
}


@pytest.mark.parametrize("name", CASES)
def test_states_are_kept(name: str, tmp_path: Path) -> None:
    net, options, made, shapes = CASES[name]
    weights = Weights()
    step = made(weights)
    path = tmp_path / "net.cfg"
    path.write_text(text_of([section("net", **net), section(name.partition(".")[0], **options)]))
    floats = b"".join(a.astype("<f4").tobytes() for a in weights.drawn)
    path.with_suffix(".weights").write_bytes(np.array([0, 2, 5, 0, 0], "<i4").tobytes() + floats)
    model = weft.compile(path)
    state, held = model.new_state(), tuple(np.zeros(s) for s in shapes)
    for k in range(3):
        x = np.random.default_rng(k).standard_normal((1, *net.values())).astype(np.float32)
        wanted, *held_ = step(x, *held)
        held = tuple(held_)
        np.testing.assert_allclose(model.run([x], state=state)[0], wanted, rtol=1e-4, atol=1e-5)


def test_images_that_the_original_turns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.cfg"
    path.write_text("[net]\nchannels=2\nheight=4\nwidth=6\n[crnn]\n")
    path.with_suffix(".weights").write_bytes(np.array([0, 2, 0, 0, 0], "<i4").tobytes())
    with pytest.raises(weft.ModelError, match="swaps height and width here"):
        weft.compile(path)


def test_strides_of_images_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.cfg"
    path.write_text("[net]\nchannels=2\nheight=4\nwidth=4\n[crnn]\nstride=2\n")
    path.with_suffix(".weights").write_bytes(np.array([0, 2, 5, 0, 0], "<i4").tobytes())
    with pytest.raises(weft.ModelError, match=r"stride=2 \(line 6\) should be 1, so that states keep their size"):
        weft.compile(path)
