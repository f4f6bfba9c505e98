"""Operations of StableHLO's specification, and calls that older exports of JAX have, by their text, without JAX."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import pytest
from tests.frontends.jax.test_text import X, function

import weft
from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

T, OF_ONE = "tensor<3x4xf32>", "replica_groups = dense<0> : tensor<1x1xi64>"
INFINITE = np.where(X > 9, np.inf, np.where(X < 2, -np.inf, X)).astype(np.float32)
BODY = "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"

CASES: dict[str, tuple[str, str, list[Any]]] = {
    "broadcast": (
        f"%0 = stablehlo.broadcast %x, sizes = [2, 1] : ({T}) -> tensor<2x1x3x4xf32>",
        "",
        [np.stack([X[None]] * 2)],
    ),
    "generic broadcast": (
        f'%0 = "stablehlo.broadcast"(%x) <{{broadcast_sizes = array<i64: 2>}}> : ({T}) -> tensor<2x3x4xf32>',
        "",
        [np.stack([X] * 2)],
    ),
    "logistic": (f"%0 = stablehlo.logistic %x : {T}", "", [1 / (1 + np.exp(-X))]),
    "is_inf": (f"%0 = chlo.is_inf %x : {T} -> tensor<3x4xi1>", "", [np.isinf(INFINITE)]),
    "replica_id": ("%0 = stablehlo.replica_id : tensor<ui32>", "", [np.uint32(0)]),
    "all_to_all": (
        f'%0 = "stablehlo.all_to_all"(%x) <{{concat_dimension = 0 : i64, {OF_ONE}, split_count = 1 : i64, '
        f"split_dimension = 1 : i64}}> : ({T}) -> {T}",
        "",
        [X],
    ),
    "collective_broadcast": (f'%0 = "stablehlo.collective_broadcast"(%x) <{{{OF_ONE}}}> : ({T}) -> {T}', "", [X]),
    "if": (
        "%c = stablehlo.constant dense<5.0> : tensor<f32>\n%s = stablehlo.slice %x [0:1, 0:1] : "
        f"({T}) -> tensor<1x1xf32>\n%r = stablehlo.reshape %s : (tensor<1x1xf32>) -> tensor<f32>\n"
        "%p = stablehlo.compare LT, %r, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        '%0 = "stablehlo.if"(%p) ({\n'
        f"%d = stablehlo.add %x, %x : {T}\nstablehlo.return %d : {T}\n}}, {{\nstablehlo.return %x : {T}\n}}) "
        f": (tensor<i1>) -> {T}",
        "",
        [X * 2],
    ),
    "map": (
        '%0 = "stablehlo.map"(%x, %x) <{dimensions = array<i64: 0, 1>}> ({\n'
        f"{BODY}%k = stablehlo.constant dense<2.0> : tensor<f32>\n%m = stablehlo.multiply %a, %k : tensor<f32>\n"
        "%p = stablehlo.compare GT, %m, %k : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "%s = stablehlo.select %p, %m, %k : tensor<i1>, tensor<f32>\nstablehlo.return %s : tensor<f32>\n}) "
        f": ({T}, {T}) -> {T}",
        "",
        [np.maximum(X * 2, 2)],
    ),
    "map to one number": (
        '%0 = "stablehlo.map"(%x, %x) <{dimensions = array<i64: 0, 1>}> ({\n'
        f"{BODY}%k = stablehlo.constant dense<2.0> : tensor<f32>\nstablehlo.return %k : tensor<f32>\n}}) : ({T}, {T}) -> {T}",
        "",
        [np.full_like(X, 2)],
    ),
    "composite": (
        '%0 = stablehlo.composite "mine.twice" %x {composite_attributes = {n = 2 : i64}, decomposition = @twice, '
        f"version = 1 : i32}} : ({T}) -> {T}",
        f"func.func private @twice(%v: {T}) -> {T} {{\n%0 = stablehlo.add %v, %v : {T}\nreturn %0 : {T}\n}}",
        [X * 2],
    ),
    "error function": (
        f"%0 = stablehlo.custom_call @mhlo.erf(%x) {{mhlo.attributes = {{}}, mhlo.version = 1 : i64}} : ({T}) -> {T}",
        "",
        [np.vectorize(math.erf)(X)],
    ),
    "sharding": (
        f'%1 = stablehlo.custom_call @Sharding(%x) {{backend_config = "", mhlo.sharding = "{{replicated}}"}} : ({T}) -> {T}\n'
        f'%2 = stablehlo.custom_call @SPMDFullToShardShape(%1) {{mhlo.sharding = "{{manual}}"}} : ({T}) -> {T}\n'
        f"%3 = stablehlo.add %2, %2 : {T}\n"
        f'%0 = "stablehlo.custom_call"(%3) <{{call_target_name = "SPMDShardToFullShape"}}> : ({T}) -> {T}',
        "",
        [X * 2],
    ),
    "sizes": (
        f"%n = stablehlo.get_dimension_size %x, dim = 1 : ({T}) -> tensor<i32>\n"
        "%two = stablehlo.constant dense<2> : tensor<1xi32>\n%v = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n"
        "%s = stablehlo.concatenate %two, %v, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>\n"
        "%1 = stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi32>) -> tensor<?x?xf32>\n"
        "%f = stablehlo.constant dense<[4, 3]> : tensor<2xi32>\n"
        f"%2 = stablehlo.dynamic_reshape %x, %f : ({T}, tensor<2xi32>) -> tensor<?x?xf32>\n"
        "%w = stablehlo.constant dense<[2, 3, 4]> : tensor<3xi32>\n"
        f"%0 = stablehlo.dynamic_broadcast_in_dim %x, %w, dims = [1, 2] : ({T}, tensor<3xi32>) -> tensor<?x?x?xf32>",
        "",
        [np.stack([X] * 2), np.tile(np.arange(4, dtype=np.float32), (2, 1)), X.reshape(4, 3), np.int32(4)],
    ),
    "gather": (
        "%i = stablehlo.constant dense<[[1], [0]]> : tensor<2x1xi32>\n%s = stablehlo.constant dense<[2, 4]> : tensor<2xi32>\n"
        '%0 = "stablehlo.dynamic_gather"(%x, %i, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], '
        f"start_index_map = [0], index_vector_dim = 1>}}> : ({T}, tensor<2x1xi32>, tensor<2xi32>) -> tensor<2x2x4xf32>",
        "",
        [np.stack([X[1:3], X[:2]])],
    ),
}
"""Bodies, further functions of the module, and results: those of `%0`, `%1` ... and of `%n`."""
NAMES = {"sizes": ["%0", "%1", "%2", "%n"]}


@pytest.mark.parametrize("name", CASES)
def test_operation(name: str) -> None:
    body, others, wanted = CASES[name]
    text = function(f"{body}\nreturn {', '.join(NAMES.get(name, ['%0']))} : tensor<1xf32>").decode()
    graph = to_graph(f"{text.removesuffix('}')}{others}\n}}".encode())
    for got, want in zip(run_graph(graph, {"x": INFINITE if name == "is_inf" else X}), wanted, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_a_condition_on_sizes_that_is_false() -> None:
    call = 'stablehlo.custom_call @shape_assertion(%c, %n) {error_message = "n is {0}, not 3", has_side_effect = true}'
    text = "%c = stablehlo.constant dense<{}> : tensor<i1>\n%n = stablehlo.constant dense<4> : tensor<i32>\n"
    text += f"{call} : (tensor<i1>, tensor<i32>) -> ()\nreturn %x : {T}"
    (got,) = run_graph(to_graph(function(text.replace("{}", "true", 1))), {"x": X})
    np.testing.assert_array_equal(got, X)
    with pytest.raises(weft.ModelError, match="n is 4, not 3"):
        to_graph(function(text.replace("{}", "false", 1)))
