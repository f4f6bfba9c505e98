"""Damaged models: whatever is wrong with a node, the importer says so in an error of its own."""

from __future__ import annotations

import random

import numpy as np
import pytest
from onnx import AttributeProto, ModelProto
from tests.frontends.onnx.test_onnx_cases import arrays, cases

from weft.frontends.onnx.importer import from_onnx
from weft.frontends.onnx.registry import TABLE
from weft.support.errors import WeftError


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


MUTATIONS = [drop_input, drop_attribute, change_attribute, change_rank, change_type]


@pytest.mark.parametrize("seed", range(4))
def test_damaged_models_are_refused_or_imported(seed: int) -> None:
    rng = random.Random(seed)
    refused = 0
    for op in sorted(name for domain, name in TABLE if not domain and name in cases()):
        case = rng.choice(cases()[op])
        assert case.model is not None
        assert case.data_sets is not None
        model = ModelProto()
        model.CopyFrom(case.model)
        if not model.graph.input:
            continue
        rng.choice(MUTATIONS)(model, rng)
        given = dict(zip([i.name for i in model.graph.input], arrays(case.data_sets[0][0]), strict=False))
        fixed = {k: v for k, v in given.items() if isinstance(v, np.ndarray) and v.dtype.kind in "iub"}
        try:
            from_onnx(model, values=fixed)
        except WeftError:
            refused += 1
    assert refused > 20
