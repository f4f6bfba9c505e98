"""Ways to damage a model that keep most of its structure: a field of a node, an input or a weight is another."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from onnx import AttributeProto, ModelProto, NodeProto, TensorProto

Mutation: TypeAlias = Callable[[ModelProto, random.Random], None]

BORDERS: Final = (-(2**63), -(2**31), -100, -2, -1, 0, 1, 2, 5, 50, 99, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1)
"""Whole numbers at which something may go wrong."""


def drop_input(m: ModelProto, rng: random.Random) -> None:
    n = rng.choice(list(m.graph.node))
    if n.input:
        n.input[rng.randrange(len(n.input))] = ""


def drop_attribute(m: ModelProto, rng: random.Random) -> None:
    n = rng.choice(list(m.graph.node))
    if n.attribute:
        del n.attribute[rng.randrange(len(n.attribute))]


def change_attribute(m: ModelProto, rng: random.Random) -> None:
    n = rng.choice(list(m.graph.node))
    for a in n.attribute:
        if a.type == AttributeProto.INT:
            a.i = rng.choice([-100, -2, -1, 0, 1, 5, 99])
        elif a.type == AttributeProto.INTS and a.ints:
            a.ints[rng.randrange(len(a.ints))] = rng.choice([-5, -1, 0, 1, 50])
        elif a.type == AttributeProto.STRING:
            a.s = b"odd"


def change_rank(m: ModelProto, rng: random.Random) -> None:
    shape = rng.choice(list(m.graph.input)).type.tensor_type.shape
    if rng.random() < 0.5 and shape.dim:
        del shape.dim[rng.randrange(len(shape.dim))]
    else:
        shape.dim.add().dim_value = rng.choice([1, 2, 7])


def change_type(m: ModelProto, rng: random.Random) -> None:
    rng.choice(list(m.graph.input)).type.tensor_type.elem_type = rng.choice([1, 2, 6, 7, 9, 10, 11])


GENTLE: Final[tuple[Mutation, ...]] = (drop_input, drop_attribute, change_attribute, change_rank, change_type)
"""Those after which a node is refused, or is another node."""


def set_border(m: ModelProto, rng: random.Random) -> None:
    """A number of an attribute, a dimension or the operator set is at a border."""
    n = rng.choice(list(m.graph.node))
    for a in n.attribute:
        a.i = rng.choice(BORDERS) if a.type == AttributeProto.INT else a.i
        if a.ints:
            a.ints[rng.randrange(len(a.ints))] = rng.choice(BORDERS)


def set_size(m: ModelProto, rng: random.Random) -> None:
    dims = [d for i in m.graph.input for d in i.type.tensor_type.shape.dim]
    if dims:
        rng.choice(dims).dim_value = rng.choice(BORDERS)


def symbolic_size(m: ModelProto, rng: random.Random) -> None:
    dims = [d for i in m.graph.input for d in i.type.tensor_type.shape.dim]
    if dims:
        rng.choice(dims).dim_param = rng.choice(["n", "", "n*2", "m\0", "x" * 300])


def rewire(m: ModelProto, rng: random.Random) -> None:
    """A node reads another value, its own result among them."""
    n = rng.choice(list(m.graph.node))
    names = [v for k in m.graph.node for v in (*k.input, *k.output)]
    if n.input and names:
        n.input[rng.randrange(len(n.input))] = rng.choice(names)


def repeat_node(m: ModelProto, rng: random.Random) -> None:
    n = NodeProto()
    n.CopyFrom(rng.choice(list(m.graph.node)))
    m.graph.node.append(n)


def other_operator(m: ModelProto, rng: random.Random) -> None:
    n = rng.choice(list(m.graph.node))
    n.op_type = rng.choice(
        ["Add", "Reshape", "Concat", "Loop", "If", "Gather", "StringConcat", "Einsum", "QLinearConv", "?"]
    )


def other_domain(m: ModelProto, rng: random.Random) -> None:
    rng.choice(list(m.graph.node)).domain = rng.choice(["ai.onnx", "ai.onnx.ml", "com.microsoft", "no", ""])


def other_opset(m: ModelProto, rng: random.Random) -> None:
    if m.opset_import:
        m.opset_import[0].version = rng.choice([*BORDERS, *range(1, 30)])


def damage_weight(m: ModelProto, rng: random.Random) -> None:
    """A weight, or a constant in a node, has other bytes, dimensions or another type."""
    inner = [a.t for n in m.graph.node for a in n.attribute if a.type == AttributeProto.TENSOR]
    tensors: list[TensorProto] = [*m.graph.initializer, *inner]
    if not tensors:
        return
    t, kind = rng.choice(tensors), rng.randrange(4)
    if kind == 0:
        t.raw_data = t.raw_data[: len(t.raw_data) // 2]
    elif kind == 1:
        t.data_type = rng.randrange(30)
    elif kind == 2 and t.dims:
        t.dims[rng.randrange(len(t.dims))] = rng.choice(BORDERS)
    else:
        t.raw_data = rng.randbytes(len(t.raw_data))


def input_as_weight(m: ModelProto, rng: random.Random) -> None:
    """An input has a value of whole numbers, which may decide shapes."""
    i = rng.choice(list(m.graph.input))
    sizes = [rng.randrange(4) for _ in range(rng.randrange(3))]
    t = TensorProto(name=i.name, dims=sizes, data_type=TensorProto.INT64)
    count = 1
    for s in sizes:
        count *= s
    t.int64_data.extend([rng.choice(BORDERS) for _ in range(count)])
    m.graph.initializer.append(t)


FIELDS: Final[tuple[Mutation, ...]] = (set_border, set_size, symbolic_size, other_opset, damage_weight, input_as_weight)
NODES: Final[tuple[Mutation, ...]] = (rewire, repeat_node, other_operator, other_domain)
HARSH: Final[tuple[Mutation, ...]] = (*GENTLE, *FIELDS, *NODES)
"""All of them."""


def damaged_model(rng: random.Random, data: bytes) -> bytes:
    """Returns a model with one to three of its fields changed."""
    model = ModelProto.FromString(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if model.graph.node and model.graph.input:
            with suppress(TypeError, ValueError):  # a number that this field can't have
                rng.choice(HARSH)(model, rng)
    made: bytes = model.SerializeToString()
    return made
