"""StableHLO's text, without JAX: its forms, what is refused, and damaged texts."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from tests.support.damaged_files import damaged

import weft
from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import frontend_of, to_graph

FOLDER = Path(__file__).parent / "texts"
"""Texts that `make_texts.py` had JAX print."""

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def function(body: str, result: str = "tensor<3x4xf32>") -> bytes:
    return f"module @m {{\n func.func @main(%x: tensor<3x4xf32>) -> {result} {{\n{body}\n }}\n}}".encode()


def said(body: str, kind: type[weft.ModelError] = weft.ModelError) -> str:
    with pytest.raises(kind) as caught:
        to_graph(function(body))
    return str(caught.value)


SAME = [
    (
        "%0 = stablehlo.slice %x [0:3:2, 1:3] : (tensor<3x4xf32>) -> tensor<2x2xf32>",
        '%0 = "stablehlo.slice"(%x) <{start_indices = array<i64: 0, 1>, limit_indices = array<i64: 3, 3>, '
        "strides = array<i64: 2, 1>}> : (tensor<3x4xf32>) -> tensor<2x2xf32>",
    ),
    (
        "%0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x3xf32>",
        '%0 = "stablehlo.dot_general"(%x, %x) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], '
        "rhs_contracting_dimensions = [1]>}> : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x3xf32>",
    ),
    (
        "%0 = stablehlo.compare LT, %x, %x, FLOAT : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>",
        '%0 = "stablehlo.compare"(%x, %x) <{comparison_direction = #stablehlo<comparison_direction LT>}> '
        ": (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>",
    ),
    (
        "%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] "
        ": (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>",
        "%c = stablehlo.constant dense<0x00000000> : tensor<f32>\n"
        '%0 = "stablehlo.reduce"(%x, %c) <{dimensions = array<i64: 1>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
        "%s = stablehlo.add %b, %a : tensor<f32>\nstablehlo.return %s : tensor<f32>\n}) "
        ": (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>",
    ),
    (
        "%0 = stablehlo.constant dense<[[1, 2], [-3, 4]]> : tensor<2x2xi16>",
        '%0 = stablehlo.constant dense<"0x01000200FDFF0400"> : tensor<2x2xi16>',
    ),
]


@pytest.mark.parametrize("k", range(len(SAME)))
def test_both_forms_mean_the_same(k: int) -> None:
    results = [run_graph(to_graph(function(f"{text}\nreturn %0 : tensor<1xf32>")), {"x": X})[0] for text in SAME[k]]
    np.testing.assert_array_equal(results[0], results[1])


def test_constants_of_truths_and_resources() -> None:
    text = function(
        '%0 = stablehlo.constant dense<"0x010001"> : tensor<3xi1>\n'
        "%1 = stablehlo.constant dense_resource<held> : tensor<2xf32>\nreturn %0, %1 : tensor<3xi1>, tensor<2xf32>"
    )
    text += b'\n{-#\n dialect_resources: { builtin: { held: "0x040000000000803F000000C0" } }\n#-}\n'
    truths, numbers = run_graph(to_graph(text), {"x": X})
    np.testing.assert_array_equal(truths, [True, False, True])
    np.testing.assert_array_equal(numbers, np.array([1, -2], np.float32))


def test_messages() -> None:
    assert said("%0 = stablehlo.add %x, %y : tensor<3x4xf32>\nreturn %0 : tensor<3x4xf32>") == (
        "add (line 3): it uses %y, which nothing before it makes\n  hint: lower the function again"
    )
    assert said("%0 = stablehlo.iota dim = 3 : tensor<3xi32>\nreturn %0 : tensor<3xi32>").startswith("iota (line 3): ")
    assert said("return ? : tensor<f32>") == (
        "the model given as bytes, line 3: the operands and attributes of return are expected, where '? : tensor<f32>' stands\n"
        "  hint: lower the function again; Weft reads what jax.jit(fn).lower(...).as_text() prints"
    )
    unknown = "%0 = stablehlo.infeed %x : (tensor<3x4xf32>) -> tensor<3x4xf32>\n"
    assert said(f'{unknown}%1 = "mine.op"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>\nreturn %1 : f', weft.ModelError)
    assert said(
        f'{unknown}%1 = "mine.op"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>\nreturn %1 : tensor<3x4xf32>',
        weft.UnsupportedOperators,
    ) == (
        "the model uses 2 operators that Weft does not have:\n"
        "  mine.op, 1 node: (line 4)\n"
        "  stablehlo.infeed, 1 node: (line 3)\n"
        "  hint: write the function with others"
    )


def test_functions_that_call_one_another_without_end() -> None:
    call = "%0 = call @main(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>\nreturn %0 : tensor<3x4xf32>"
    assert "are more than 100 inside of one another" in said(call)


MARKS = [
    b"-",
    b"99999",
    b"{",
    b"}",
    b"<",
    b">",
    b"[",
    b"]",
    b":",
    b"%0",
    b"\xff",
    b'"',
    b"x",
    b"tensor<3xf32>",
    b"stablehlo.add",
]


def _damaged_texts(seeds: range) -> int:
    """Imports damaged copies of texts, one a seed; returns how many were refused. Only Weft's errors are let through."""
    kept = [p.read_bytes() for p in sorted(FOLDER.glob("*.mlir"))]
    frontend, refused = frontend_of(kept[0]), list[weft.WeftError]()
    for seed in seeds:
        random_ = random.Random(seed)
        try:
            frontend.to_graph(damaged(random_, random_.choice(kept), MARKS))
        except weft.WeftError as error:
            refused.append(error)
    return len(refused)


def test_damaged_texts_end_in_errors_of_weft() -> None:
    assert _damaged_texts(range(150)) > 100


@pytest.mark.slow
def test_many_damaged_texts() -> None:
    assert _damaged_texts(range(1000, 11_000)) > 7000
