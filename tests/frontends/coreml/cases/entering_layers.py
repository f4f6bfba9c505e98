"""The table of cases of layers, and what their files enter them with: networks of one layer, of coremltools' builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder

LAYERS: Final[dict[str, tuple[Any, dict[str, Any], Callable[..., Any]]]] = {}


def layer(
    name: str,
    kind: str,
    *inputs: Any,
    wanted: Callable[..., Any],
    outputs: int = 1,
    images: bool = False,
    **parameters: Any,
) -> None:
    """Enters a network of a layer with inputs a, b, c ...; *images* are networks of before 2019, of tensors [C, H, W]."""
    given = {chr(97 + k): np.asarray(v, np.float32) for k, v in enumerate(inputs)}
    results = [f"y{k}" for k in range(outputs)]
    features = [(k, datatypes.Array(*v.shape)) for k, v in given.items()]
    builder = NeuralNetworkBuilder(features, [(r, None) for r in results], disable_rank5_shape_mapping=not images)
    used = {"input_names": [*given]} if len(given) > 1 or kind in MANY else {"input_name": "a"}
    made = {"output_names": results} if outputs > 1 or kind.startswith("split") else {"output_name": "y0"}
    alone = kind.startswith(("load", "fill_static", "range_static"))
    if alone:
        used = {}
    getattr(builder, f"add_{kind}")(name="l", **used, **made, **parameters)
    if alone:
        builder.add_add_broadcastable("s", ["a", "y0"], "y1")
        builder.spec.description.output[0].name = "y1"
    assert name not in LAYERS, name
    LAYERS[name] = (builder.spec.SerializeToString(), given, wanted)


MANY: Final = ("batched_mat_mul", "elementwise", "range_dynamic", "crop")
