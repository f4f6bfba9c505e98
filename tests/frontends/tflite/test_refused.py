"""Unsupported and damaged files: the messages name the operator, and say what to do."""

from __future__ import annotations

import random
import struct

import pytest
from tests.frontends.tensorflow.test_networks import FOLDER
from tests.frontends.tensorflow.test_refused import said, tried
from tests.frontends.tflite.test_operators import MODELS
from tests.support.damaged_files import damaged

from weft.frontends.dispatch import to_graph
from weft.frontends.tflite.flatbuffer import Damaged, root
from weft.frontends.tflite.registry import TABLE
from weft.frontends.tflite.schema import BUILTINS, OPTIONS

QUANTISED = (FOLDER / "mobilenet.int8.tflite").read_bytes()
MARKS = [b"\x00" * 4, b"\xff" * 4, b"\x04\x00\x00\x00", b"\x00\x00\x00\x80"]


def renumbered(model: bytes, kind: str, number: int) -> bytes:
    """Returns a model whose operator *kind* has another number, in both fields that have it."""
    old, new = BUILTINS.index(kind), number
    changed = bytearray(model)
    for table in root(memoryview(model)).tables(1):
        for slot, form in ((0, "<b"), (3, "<i")):
            at = table._field(slot)
            if at is not None and struct.unpack_from(form, model, at)[0] == old:
                struct.pack_into(form, changed, at, new)
    return bytes(changed)


def test_all_unsupported_operators_are_told_at_once() -> None:
    model = renumbered(
        renumbered(QUANTISED, "CONV_2D", BUILTINS.index("LSH_PROJECTION")), "SOFTMAX", BUILTINS.index("CUSTOM")
    )
    lines = said(model).splitlines()
    assert lines[0] == "the model uses 2 operators that Weft does not have:"
    assert lines[1].startswith("  CUSTOM , 1 node: StatefulPartitionedCall")
    assert lines[2].startswith("  LSH_PROJECTION, 5 nodes: functional_")
    assert lines[3] == "  hint: convert the model without these operators"


def test_the_sign_bit_after_an_operator_is_refused() -> None:
    file = root(memoryview(QUANTISED))
    codes = [int(code.number(0, "i8")) for code in file.tables(1)]
    operators = next(file.tables(2)).tables(3)
    given = [o.table(4) for o in operators if codes[o.number(0, "u32")] == BUILTINS.index("CONV_2D")]
    places = [at for options in given if options is not None and (at := options._field(3)) is not None]
    model = bytearray(QUANTISED)
    model[places[0]] = 5
    assert said(bytes(model)).endswith("there is no activation function 5\n  hint: convert the model again")


def test_damaged_files() -> None:
    assert said(QUANTISED[:2000]) == (
        "the model given as bytes is damaged or cut short\n  hint: download or convert the model again"
    )
    with pytest.raises(Damaged):
        root(memoryview(b"\x00" * 8))


def test_the_main_subgraph_has_its_names_from_the_signature() -> None:
    graph = to_graph(QUANTISED)
    assert [repr(v.dtype) for v in graph.inputs] == ["i8"]
    assert [v.name for v in graph.inputs] == ["keras_tensor"]


def test_options_are_of_operators_that_there_are() -> None:
    assert set(OPTIONS) <= set(BUILTINS)
    assert len(TABLE) > 110


def check_damaged(seeds: range) -> None:
    models = [*MODELS.values(), QUANTISED]
    for seed in seeds:
        rng = random.Random(seed)
        tried(seed, damaged(rng, rng.choice(models), MARKS))


@pytest.mark.parametrize("block", range(4))
def test_files_damaged_at_random(block: int) -> None:
    check_damaged(range(75 * block, 75 * block + 75))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_damaged_files(block: int) -> None:
    check_damaged(range(1000 + 500 * block, 1500 + 500 * block))
