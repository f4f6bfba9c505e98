"""Operators that move, choose and compare elements: on strings they do so with the ids."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft.frontends.onnx.call import Call, HeldResults
from weft.frontends.onnx.held import Held, NoTensor
from weft.frontends.onnx.model_node import domain_of
from weft.frontends.onnx.ops.classical import DOMAIN
from weft.frontends.onnx.registry import TABLE, translates_strings
from weft.frontends.onnx.string_pool import DEFAULT_STRING, texts_of
from weft.frontends.string_ids import Strings
from weft.graph import UNFIT
from weft.graph.builder import CompileTimeConstant
from weft.support.dtypes import i64


def _as_on_numbers(c: Call) -> HeldResults:
    """Returns the results of the operator on the ids."""
    c.inputs = [v.ids if isinstance(v, Strings) else w for v, w in zip(c.held, c.inputs, strict=True)]
    c.held = list(c.inputs)
    return TABLE[domain_of(c.node), c.node.op_type].translate(c)


def _strings(made: HeldResults) -> HeldResults:
    """Returns results with the integers among them as strings."""
    return tuple([_one(v) for v in (made if isinstance(made, tuple) else (made,))])


def _one(v: Held | None) -> Held | None:
    return Strings(v) if not isinstance(v, NoTensor) and v is not None and v.dtype is i64 else v


@translates_strings(
    "Concat",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
    "Where",
    "Compress",
    "ScatterElements",
    "ScatterND",
    "ReverseSequence",
    "SpaceToDepth",
    "DepthToSpace",
)
@translates_strings("ArrayFeatureExtractor", domain=DOMAIN)
def moved(c: Call) -> HeldResults:
    """The strings elsewhere."""
    if not isinstance(c.held[1 if c.node.op_type == "Where" else 0], Strings):
        c.fail("only some of its tensors are of strings", UNFIT)
    return _strings(_as_on_numbers(c))


@translates_strings("Equal", "Shape", "Size")
def asked(c: Call) -> HeldResults:
    """Equality, shapes and sizes of strings: those of their ids."""
    if len({isinstance(v, Strings) for v in c.held}) > 1:
        c.fail("it compares strings with numbers", UNFIT)
    return _as_on_numbers(c)


@translates_strings("Constant")
def constant(c: Call) -> HeldResults:
    """A constant of strings."""
    (found,) = c.attributes.values()
    made = c.strings.tensor(np.asarray(texts_of(found), object))
    return Strings(
        CompileTimeConstant(made.array.reshape(() if isinstance(found, str) else np.shape(found)), c.node.output[0])
    )


@translates_strings("LabelEncoder", domain=DOMAIN)
def label_encoder(c: Call) -> HeldResults:
    """Elements replaced by others that a table has for them."""
    if "classes_strings" in c.attributes:
        ids = c.strings.of(c.attributes.pop("classes_strings"))
        numbers = list(range(len(ids)))
        keys, values = (ids, numbers) if isinstance(c.held[0], Strings) else (numbers, ids)
        c.attributes.update(keys_int64s=keys, values_int64s=values)
        makes_strings = values is ids
    else:
        if _by_ids(c, "keys") != isinstance(c.held[0], Strings):
            c.fail(f"only one of its keys and its input is of strings: {c.held[0]!r}", UNFIT)
        makes_strings = _by_ids(c, "values")
    if makes_strings:
        default = texts_of(c.attributes.pop("default_tensor", c.attributes.get("default_string", DEFAULT_STRING)))
        c.attributes["default_int64"] = c.strings.ids[default[0]]
    made = _as_on_numbers(c)
    return _strings(made) if makes_strings else made


@translates_strings("CategoryMapper", domain=DOMAIN)
def category_mapper(c: Call) -> HeldResults:
    """Strings replaced by the numbers of their categories, or numbers by strings."""
    names, numbers = c.attributes.pop("cats_strings", []), c.attributes.pop("cats_int64s", [])
    keys, values = ("strings", "int64s") if isinstance(c.held[0], Strings) else ("int64s", "strings")
    sides = {"strings": names, "int64s": numbers}
    c.attributes.update({f"keys_{keys}": sides[keys], f"values_{values}": sides[values]})
    return label_encoder(c)


def _by_ids(c: Call, side: str) -> bool:
    """Makes a side of the table that is of strings one of their ids; tells whether it was."""
    for name in (f"{side}_strings", f"{side}_tensor"):
        found = c.attributes.get(name)
        if found is not None and (name.endswith("strings") or found.dtype == object):
            del c.attributes[name]
            c.attributes[f"{side}_int64s"] = c.strings.of(texts_of(found))
            return True
    return False


def _with_ids(strings: str, numbers: str, *, is_result: bool) -> Callable[[Call], HeldResults]:
    """Returns the translation of an operator whose attribute *strings* becomes *numbers*."""

    def translate(c: Call) -> HeldResults:
        if strings in c.attributes:
            c.attributes[numbers] = c.strings.of(c.attributes.pop(strings))
        elif is_result or isinstance(c.held[0], Strings):
            c.fail(f"its attribute {strings!r} is missing", UNFIT)
        made = _as_on_numbers(c)
        if not is_result:
            return made
        label, *rest = made if isinstance(made, tuple) else (made,)
        return (_one(label), *rest)

    return translate


translates_strings("OneHotEncoder", domain=DOMAIN)(_with_ids("cats_strings", "cats_int64s", is_result=False))
translates_strings("TfIdfVectorizer")(_with_ids("pool_strings", "pool_int64s", is_result=False))
translates_strings("LinearClassifier", domain=DOMAIN)(
    _with_ids("classlabels_strings", "classlabels_ints", is_result=True)
)
translates_strings("SVMClassifier", domain=DOMAIN)(_with_ids("classlabels_strings", "classlabels_ints", is_result=True))
translates_strings("TreeEnsembleClassifier", domain=DOMAIN)(
    _with_ids("classlabels_strings", "classlabels_int64s", is_result=True)
)
