"""Transposes that moving the channels costs: none for images of one pixel, nor between layers that work on images."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("h5py")

from tests.frontends.keras.saved import archive, layer, sequence

from weft.driver.checking.reference import run_graph
from weft.frontends import to_graph
from weft.graph.builder import static_sizes
from weft.graph.passes.eliminate_dead_code import eliminate_dead_code


def test_an_image_of_one_pixel_is_not_transposed() -> None:
    """As in squeeze-and-excitation: means of the channels become an image of one pixel, which layers of images take."""
    layers = [
        layer("GlobalAveragePooling2D"),
        layer("Reshape", target_shape=[1, 1, 4]),
        layer("UpSampling2D", size=[2, 3], interpolation="nearest"),
    ]
    graph = to_graph(archive(sequence([5, 6, 4], *layers)))
    moved = [x for n in graph.nodes if n.op == "transpose" for x in n.inputs if x is not None]
    assert len(moved) == 2  # of the image that is given, and of the one that is made
    assert [x for x in moved if static_sizes(x.shape[1:3]) == [1, 1]] == []
    x = np.random.default_rng(0).standard_normal((2, 5, 6, 4), np.float32)
    (found,) = run_graph(graph, {"x": x})
    wanted = np.broadcast_to(x.mean((1, 2))[:, None, None, :], (2, 2, 3, 4))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_nothing_is_transposed_between_layers_of_images() -> None:
    layers = [
        layer("UpSampling2D", size=[2, 2], interpolation="nearest"),
        layer("Rescaling", scale=[0.5, 1.0, 2.0, 3.0], offset=1.0),
        layer("Activation", activation="log_softmax"),
        layer("Softmax", axis=1),
        layer("Softmax", axis=-1),
        layer("UpSampling2D", size=[2, 2], interpolation="nearest"),
    ]
    graph = eliminate_dead_code(to_graph(archive(sequence([5, 6, 4], *layers))))
    assert sum(n.op == "transpose" for n in graph.nodes) == 2  # of the image that is given, and of the one that is made
    x = np.random.default_rng(0).standard_normal((2, 5, 6, 4), np.float32)
    (found,) = run_graph(graph, {"x": x})
    y = x.repeat(2, 1).repeat(2, 2) * np.array([0.5, 1, 2, 3], np.float32) + 1
    y = y - np.log(np.exp(y).sum(-1, keepdims=True))
    for axis in (1, -1):
        y = np.exp(y) / np.exp(y).sum(axis, keepdims=True)
    np.testing.assert_allclose(found, y.repeat(2, 1).repeat(2, 2), rtol=1e-5, atol=1e-6)
