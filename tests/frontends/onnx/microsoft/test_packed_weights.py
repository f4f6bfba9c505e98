"""Products with weights of few bits, against ONNX Runtime."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from tests.frontends.onnx.microsoft.contrib_nodes import contrib_model, integers
from tests.frontends.onnx.nodes import check_like_runtime, floats, imported

import weft
from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import ModelError

ROWS, COLUMNS, SIZE = 6, 44, 16
BLOCKS = 3


def weights_of(bits: int) -> dict[str, Any]:
    """Returns a random packed weight, its scales, its zero points packed and as floats, and a bias."""
    return {
        "b": integers(np.uint8, (ROWS, BLOCKS, SIZE * bits // 8), 1),
        "s": floats(ROWS, BLOCKS, seed=2) * np.float32(0.1),
        "z": integers(np.uint8, (ROWS, -(-BLOCKS * bits // 8)), 3),
        "f": floats(ROWS, BLOCKS, seed=4) + np.float32(8),
        "c": floats(ROWS, seed=5),
    }


def attributes_of(bits: int) -> dict[str, Any]:
    return {"K": COLUMNS, "N": ROWS, "block_size": SIZE, "bits": bits}


CASES: Final = [(bits, inputs) for bits in (2, 4, 8) for inputs in ("a b s", "a b s z", "a b s f", "a b s z - c")]


@pytest.mark.parametrize(("bits", "inputs"), [c for c in CASES if c != (8, "a b s f")])  # ONNX Runtime lacks that one
def test_product(bits: int, inputs: str) -> None:
    feeds = {"a": floats(2, 5, COLUMNS)}
    model = contrib_model("MatMulNBits", inputs, feeds, weights_of(bits), **attributes_of(bits))
    check_like_runtime(model, feeds, rtol=1e-5, atol=1e-5)


def test_compiled() -> None:
    feeds = {"a": floats(5, COLUMNS)}
    model = contrib_model("MatMulNBits", "a b s z - c", feeds, weights_of(4), **attributes_of(4))
    _, [wanted] = imported(model, feeds)
    np.testing.assert_allclose(weft.compile(model)(feeds["a"]), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"bits": 3}, "its attribute 'bits' is 3; only 2, 4 and 8 are supported"),
        ({"weight_prepacked": 1}, "its attribute 'weight_prepacked' is 1; only 0 is supported"),
        ({"block_size": 0}, "its weight of 6 x 44 in blocks of 0 has no elements"),
    ],
)
def test_refused(attributes: dict[str, Any], message: str) -> None:
    model = contrib_model(
        "MatMulNBits", "a b s", {"a": floats(5, 44)}, weights_of(4), **{**attributes_of(4), **attributes}
    )
    with pytest.raises(ModelError) as caught:
        from_onnx(model)
    assert caught.value.message == message


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("bits", "axes"), [(4, (0, 2)), (8, (0, 2))])
def test_gathered_blocks(bits: int, axes: tuple[int, int], zeros: bool) -> None:
    """Packed in bytes; the last block of 40 elements has 8."""
    axis, along = axes
    shape = [6, 40, 4] if along == 0 else [6, 4, 40]
    shape[along] = 40
    blocks = [*shape[:along], 3, *shape[along + 1 :]]
    packed = [*shape[:-1], shape[-1] * bits // 8]
    points = [*blocks[:-1], -(-blocks[-1] * bits // 8)]
    weights: dict[str, Any] = {
        "d": integers(np.uint8, packed, 1),
        "s": floats(*blocks, seed=2),
        "z": integers(np.uint8, points, 3),
    }
    feeds = {"i": np.array([[1, 0], [3, 2]], np.int64)}
    names = "d i s z" if zeros else "d i s"
    used = {name: weights[name] for name in names.split() if name != "i"}
    model = contrib_model(
        "GatherBlockQuantized",
        names,
        feeds,
        used,
        bits=bits,
        block_size=16,
        gather_axis=axis,
        quantize_axis=along,
    )
    check_like_runtime(model, feeds, rtol=1e-6, atol=1e-6)
