"""Which steps of a layer's output count, by its class: most layers pass on the mask of their input, or have none."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Final

from weft.frontends.keras.call import Call
from weft.frontends.keras.ops.core import steps_other_than
from weft.graph.builder import Operand
from weft.support.dtypes import bool_, i32

Rule = Callable[[Call], Operand | None]


def mask_behind(c: Call) -> Operand | None:
    """Returns the mask of the first output of a layer; None if all steps count, or the layer does not say."""
    rule = _RULES.get(c.layer.kind)
    return None if rule is None else rule(c)


def _of_first(c: Call) -> Operand | None:
    return c.masks_of(c.tensors())[0]


def _passed(c: Call) -> Operand | None:
    return c.masks_of([c.tensor()])[0]


def _of_query(c: Call) -> Operand | None:
    query = c.named.get("query", c.positional[0] if c.positional else None)
    return c.named.get("query_mask") or (None if query is None else c.mask_of(query))


def _of_sequences(c: Call) -> Operand | None:
    return _passed(c) if c.flag("return_sequences") else None


def _of_bidirectional(c: Call) -> Operand | None:
    inner = c.layer.config.get("layer")
    settings = inner.get("config") if isinstance(inner, dict) else None
    return _passed(c) if isinstance(settings, dict) and settings.get("return_sequences") is True else None


def _of_indices(c: Call) -> Operand | None:
    x = c.tensor()
    return c.add("logical_not", c.add("equal", x, c.scalar(0, x.dtype))) if c.flag("mask_zero") else None


def _of_masking(c: Call) -> Operand:
    return steps_other_than(c, c.floats(), c.number("mask_value", 0.0), keeps=False)


def _of_any(c: Call) -> Operand | None:
    """A step counts that counts in one of the tensors; all steps do unless all tensors have masks."""
    found = c.masks_of(c.tensors())
    known = [m for m in found if m is not None]
    return reduce(lambda a, b: c.add("logical_or", a, b), known) if len(known) == len(found) else None


def _of_concatenated(c: Call) -> Operand | None:
    """A step counts that counts in one of the pieces side by side; steps one after another have their own."""
    tensors = c.tensors()
    found = c.masks_of(tensors)
    if all(m is None for m in found):
        return None
    spread = [_spread(c, x, m) for x, m in zip(tensors, found, strict=True)]
    rank = tensors[0].rank
    joined = c.add("concat", *spread, axis=c.axis_of(c.integer("axis", -1), rank))
    return c.cast(c.add("reduce_max", c.cast(joined, i32), axes=(rank - 1,), keepdims=False), bool_)


def _spread(c: Call, x: Operand, mask: Operand | None) -> Operand:
    """Returns a tensor's mask for each of its elements."""
    if mask is None:
        return c.add("full", shape=tuple(x.shape), value=1, dtype=bool_)
    wide = c.reshape(mask, [*mask.shape, *[1] * (x.rank - mask.rank)])
    return c.add("expand", wide, shape=tuple(x.shape))


_RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(
        (
            *("Dense", "Activation", "ReLU", "LeakyReLU", "PReLU", "ELU", "Softmax", "TimeDistributed"),
            *("BatchNormalization", "LayerNormalization", "GroupNormalization", "UnitNormalization", "Normalization"),
            *("Rescaling", "Dropout", "SpatialDropout1D", "GaussianDropout", "AlphaDropout", "GaussianNoise"),
            *("ActivityRegularization", "Identity"),
        ),
        _passed,
    ),
    **dict.fromkeys(("LSTM", "GRU", "SimpleRNN", "RNN"), _of_sequences),
    **dict.fromkeys(("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"), _of_any),
    **dict.fromkeys(("Attention", "AdditiveAttention"), _of_first),
    "MultiHeadAttention": _of_query,
    "Bidirectional": _of_bidirectional,
    "Embedding": _of_indices,
    "Masking": _of_masking,
    "Concatenate": _of_concatenated,
}
"""How masks go on, by the classes of layers; behind others all steps count."""
