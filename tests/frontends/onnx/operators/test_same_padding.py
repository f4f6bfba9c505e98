"""Windows whose padding follows from a size that a call tells ("SAME" with strides), against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import TensorProto
from tests.frontends.onnx.nodes import by_runtime, check_like_runtime, floats, imported, model_of, node

from weft.support.errors import ModelError

SIDES = ((1, 1), (4, 5), (7, 8), (9, 12))
PICTURES = {"x": (TensorProto.FLOAT, (1, 3, "h", "w"))}


@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("kernel", "stride"), [(2, 2), (3, 2), (5, 3)])
@pytest.mark.parametrize(
    ("op", "attributes"),
    [("Conv", {}), ("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1})],
)
def test_pictures_of_any_sides(op: str, attributes: dict[str, Any], kernel: int, stride: int, auto: str) -> None:
    weights = {"weight": floats(4, 3, kernel, kernel)} if op == "Conv" else {}
    window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "auto_pad": auto}
    made = node(op, " ".join(["x", *weights]), "y", **window, **attributes)
    model = model_of([made], PICTURES, ["y"], weights)
    for sides in SIDES:
        check_like_runtime(model, {"x": floats(1, 3, *sides)}, rtol=1e-4, atol=1e-5)


def test_places_of_the_largest_elements_need_known_sizes() -> None:
    made = node("MaxPool", "x", "y i", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    model = model_of([made], PICTURES, ["y", "i"])
    with pytest.raises(ModelError, match="depends on a symbolic size"):
        imported(model, {"x": floats(1, 3, 4, 4)})
    assert len(by_runtime(model, {"x": floats(1, 3, 4, 4)})) == 2
