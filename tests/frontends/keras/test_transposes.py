"""Transposes that moving the channels costs: none for images of one pixel."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("h5py")

from tests.frontends.keras.saved import archive, layer, sequence

from weft.driver.checking.reference import run_graph
from weft.frontends import to_graph
from weft.graph.builder import static_sizes


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
