"""Damaged fields: whatever number, name or message of a model is changed, the importer says what is wrong, or takes it."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from google.protobuf.message import Message  # type: ignore[import-untyped]
from onnx import ModelProto
from tests.frontends.onnx.test_onnx_cases import arrays, cases

from weft.frontends.onnx.importer import from_onnx
from weft.frontends.onnx.registry import TABLE
from weft.support.errors import WeftError

MOST_BYTES = 20_000
"""Models up to which one is damaged: the others hold weights, mostly."""

_LIKELY = [-100, -3, -2, -1, 0, 1, 2, 3, 5, 9, 16, 99, 1000, 10**6]
INTEGERS = [*_LIKELY, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63)]
FLOATS = [float("nan"), float("inf"), -float("inf"), 0.0, -1.0, 1e30, 0.5]


def fields(message: Message) -> list[tuple[Message, Any]]:
    """Returns every field that is set in *message* and in those below it, with the message that it is of."""
    found: list[tuple[Message, Any]] = []
    pending = [message]
    while pending:
        at = pending.pop()
        for field, content in at.ListFields():
            if field.name not in ("ir_version", "producer_name", "doc_string", "metadata_props"):
                found.append((at, field))
                if field.type == field.TYPE_MESSAGE:
                    pending += list(content) if is_list(field) else [content]
    return found


def is_list(field: Any) -> bool:
    return isinstance(field.default_value, list)


def another(rng: random.Random, field: Any, old: Any) -> Any:
    """Returns another value of a field's kind."""
    if field.type == field.TYPE_STRING:
        return rng.choice(["", "x", "y", "odd", "é", old[:-1], old + "_"])
    if field.type == field.TYPE_BYTES:
        return rng.choice([b"", b"odd", b"\xff", old[:-1], old + b"1", rng.randbytes(len(old))])
    if field.type == field.TYPE_ENUM:
        return rng.choice([n.number for n in field.enum_type.values])
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice(FLOATS)
    return rng.choice([n for n in INTEGERS if -(2**31) <= n < 2**31 or field.cpp_type == field.CPPTYPE_INT64])


def damage(rng: random.Random, model: ModelProto) -> None:
    """Changes, drops or repeats one field of *model*, or one of its elements."""
    at, field = rng.choice(fields(model) or [(model, model.DESCRIPTOR.fields_by_name["domain"])])
    if not is_list(field):
        if rng.random() < 0.15:
            at.ClearField(field.name)
        elif field.type != field.TYPE_MESSAGE:
            setattr(at, field.name, another(rng, field, getattr(at, field.name)))
        return
    elements = getattr(at, field.name)
    k, how = rng.randrange(len(elements)), rng.random()
    if how < 0.2:
        del elements[k]
    elif field.type == field.TYPE_MESSAGE:
        elements.add().CopyFrom(elements[k])
    elif how < 0.35:
        elements.append(elements[k])
    else:
        elements[k] = another(rng, field, elements[k])


def import_damaged(seed: int) -> int:
    """Damages a model of each operator and imports it; returns how many are refused."""
    rng, refused = random.Random(seed), 0
    for op in sorted(name for _, name in TABLE if name in cases()):
        case = rng.choice(cases()[op])
        assert case.model is not None
        assert case.data_sets is not None
        if len(case.model.SerializeToString()) > MOST_BYTES:
            continue
        model = ModelProto.FromString(case.model.SerializeToString())
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            damage(rng, model)
        names = [i.name for i in case.model.graph.input]
        given = dict(zip(names, arrays(case.data_sets[0][0]), strict=False))
        fixed = {k: v for k, v in given.items() if getattr(v, "dtype", None) is not None and v.dtype.kind in "iub"}
        try:
            from_onnx(model.SerializeToString(), values=fixed if rng.random() < 0.5 else None)
        except WeftError as error:
            said = re.sub(r"\s+", " ", str(error))
            assert "bug in Weft" not in said, f"{op}: {said}"
            refused += 1
    return refused


@pytest.mark.parametrize("seed", range(4))
def test_damaged_fields(seed: int) -> None:
    assert import_damaged(seed) > 40


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_many_damaged_fields(seed: int) -> None:
    assert sum(import_damaged(1000 * seed + k) for k in range(40)) > 1600
