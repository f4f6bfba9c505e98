"""Scores as maps from labels, at the end of scikit-learn's classifiers."""

from __future__ import annotations

from weft.frontends.onnx.call import Call, HeldResults
from weft.frontends.onnx.held import Maps
from weft.frontends.onnx.ops.classical import DOMAIN
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.graph.builder import static_sizes
from weft.runtime.metadata import Labels


@translates(
    "ZipMap", domain=DOMAIN, holds=True, limits="outputs that other nodes read: compiled models give the scores alone"
)
def zip_map(c: Call) -> HeldResults:
    """Maps from labels to the scores of each row; `weft.InferenceSession` makes dicts of them, as ONNX Runtime does."""
    labels: Labels = c.ints("classlabels_int64s") or list(c.attributes.get("classlabels_strings", ()))
    x = c.input(0)
    rows = c.reshape(x, (1, *x.shape)) if x.rank == 1 else c.ranked(0, 2, "the scores")
    if static_sizes(rows.shape[1:]) != [len(labels)]:
        c.fail(f"it has {len(labels)} labels for scores of {x!r}", UNFIT)
    return Maps(rows, labels)
