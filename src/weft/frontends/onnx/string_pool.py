"""The strings that a model knows, and tensors of strings: while it is imported, these are integers, the ids of strings.

The pool has all strings of the model's attributes and constants, so that each has an id before anything is imported; "" is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any, Final

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

from weft.frontends.string_ids import ENCODING, StringIds, in_case
from weft.graph import Array
from weft.support.errors import ModelError

TEXT_ATTRIBUTES: Final = frozenset(
    {
        "cats_strings",
        "classes_strings",
        "classlabels_strings",
        "default_string",
        "delimiter",
        "keys_strings",
        "pad_value",
        "pool_strings",
        "stopwords",
        "string_vocabulary",
        "value_string",
        "value_strings",
        "values_strings",
    }
)
"""The attributes whose strings are elements of tensors, or compared with them; others are names of modes."""

MARKS: Final = ("\x02", "\x03")
"""The marks at the begin and the end of a row of `Tokenizer`."""

_VALUES: Final = ("value_string", "value_strings")
"""The attributes that are tensors of strings even where they are empty; others are as good as absent then."""

DEFAULT_STRING: Final = "_Unused"
"""The default label of an element that a table does not have."""


class StringPool(StringIds):
    """Strings by id; *models* are searched when the first id is asked for."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model

    def texts(self) -> Iterable[str]:
        """Returns the strings of the model, and the default label."""
        return DEFAULT_STRING, *_strings(self._model)


def string_array(tensor: TensorProto) -> Array:
    """Returns the elements of a tensor of strings; raises `ModelError` where they are not as many as its shape says."""
    shape = tuple(tensor.dims)
    if min(shape, default=0) < 0 or prod(shape) != len(tensor.string_data):
        raise ModelError(
            f"the tensor {tensor.name!r} of shape {list(shape)} holds {len(tensor.string_data)} strings",
            hint="the model is damaged, or whatever wrote it is wrong: export or download it again",
        )
    made = np.empty(len(tensor.string_data), object)
    made[:] = [text.decode(*ENCODING) for text in tensor.string_data]
    return made.reshape(shape)


def is_string_tensor(tensor: TensorProto) -> bool:
    """Tells whether a tensor is one of strings."""
    return tensor.data_type == TensorProto.STRING


def text_attributes(node: NodeProto) -> list[str]:
    """Returns the names of a node's attributes that hold strings of tensors."""
    named = [a.name for a in node.attribute if a.name in TEXT_ATTRIBUTES and (a.s or a.strings or a.name in _VALUES)]
    return named + [a.name for a in node.attribute if a.type == AttributeProto.TENSOR and is_string_tensor(a.t)]


def _strings(model: ModelProto) -> Iterator[str]:
    """Yields the strings of all constants and attributes, and those in lower case and in capitals of stopwords.

    A model's own functions have attributes of any names, which may become those of operators in them.
    """
    graphs: list[GraphProto | FunctionProto] = [model.graph, *model.functions]
    for a in [a for f in model.functions for a in f.attribute_proto]:
        yield from _of_attribute(a, is_renamed=True)
    while graphs:
        graph = graphs.pop()
        yield from _of_tensors(graph.initializer if isinstance(graph, GraphProto) else ())
        yield from MARKS if any(node.op_type == "Tokenizer" for node in graph.node) else ()
        for a in [a for node in graph.node for a in node.attribute]:
            graphs += [a.g] if a.type == AttributeProto.GRAPH else a.graphs
            yield from _of_attribute(a, is_renamed=bool(model.functions))


def _of_attribute(a: AttributeProto, *, is_renamed: bool) -> Iterator[str]:
    """Yields the strings of an attribute, whose name is not that of an operator's attribute where it *is_renamed*."""
    yield from _of_tensors([a.t] if a.type == AttributeProto.TENSOR else ())
    if a.name in TEXT_ATTRIBUTES or is_renamed:
        for text in [raw.decode(*ENCODING) for raw in (a.s, *a.strings)]:
            cases = (False, True) if a.name == "stopwords" or is_renamed else ()
            yield from (text, *[in_case(text, upper) for upper in cases])


def _of_tensors(tensors: Iterable[TensorProto]) -> Iterator[str]:
    for t in tensors:
        yield from [raw.decode(*ENCODING) for raw in t.string_data] if is_string_tensor(t) else ()


def texts_of(found: Any) -> Sequence[str]:
    """Returns the strings of an attribute, a list or a tensor of them."""
    return [found] if isinstance(found, str) else np.asarray(found, object).reshape(-1).tolist()
