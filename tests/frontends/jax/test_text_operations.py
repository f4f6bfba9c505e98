"""Operations by their text, without JAX: random bits, and those that JAX does not print."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pytest
from tests.frontends.jax.test_text import X, function

import weft
from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

STATE = "%s = stablehlo.constant dense<[1311768467463790320, 18364758544493064720]> : tensor<2xui64>\n"
BITS = {
    "PHILOX": (1, [0x36160BAB, 0xA3D93E83, 0xF557AD19]),
    "DEFAULT": (1, [0x36160BAB, 0xA3D93E83, 0xF557AD19]),
    "THREE_FRY": (2, [0x92506409, 0x827536D5, 0x4D818965]),
}
"""How far the counter goes, and the bits, that jax 0.10.2 gives on a CPU for the state above."""


@pytest.mark.parametrize("algorithm", BITS)
def test_random_bits(algorithm: str) -> None:
    types = "(tensor<2xui64>) -> (tensor<2xui64>, tensor<3xui32>)"
    own = f"%r:2 = stablehlo.rng_bit_generator %s, algorithm = {algorithm} : {types}"
    generic = f'%r:2 = "stablehlo.rng_bit_generator"(%s) <{{rng_algorithm = #stablehlo<rng_algorithm {algorithm}>}}> : {types}'
    steps, wanted = BITS[algorithm]
    for text in (own, generic):
        state, bits = run_graph(
            to_graph(function(f"{STATE}{text}\nreturn %r#0, %r#1 : tensor<2xui64>, tensor<3xui32>")), {"x": X}
        )
        assert state.tolist() == [1311768467463790320, 18364758544493064720 + steps]
        assert bits.dtype == np.uint32
        assert bits.tolist() == wanted


def test_a_state_that_is_none() -> None:
    text = "%r:2 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<3xui64>) -> (tensor<3xui64>, tensor<3xui32>)"
    with pytest.raises(weft.ModelError, match=r"its state .* is not one of THREE_FRY"):
        to_graph(function(f"%s = stablehlo.constant dense<1> : tensor<3xui64>\n{text}\nreturn %r#1 : tensor<3xui32>"))


PAIR = "tuple<tensor<3x4xf32>, tuple<tensor<i32>, tensor<3x4xf32>>>"
TUPLES = f"""module @m {{
 func.func @main(%x: tensor<3x4xf32>) -> {PAIR} {{
  %c = stablehlo.constant dense<3> : tensor<i32>
  %0 = stablehlo.tuple %c, %x : tuple<tensor<i32>, tensor<3x4xf32>>
  %1 = stablehlo.tuple %x, %0 : {PAIR}
  %2 = call @twice(%1) : ({PAIR}) -> {PAIR}
  %3 = stablehlo.while(%a = %2) : {PAIR} cond {{
   %i = stablehlo.get_tuple_element %a[1] : ({PAIR}) -> tuple<tensor<i32>, tensor<3x4xf32>>
   %n = stablehlo.get_tuple_element %i[0] : (tuple<tensor<i32>, tensor<3x4xf32>>) -> tensor<i32>
   %z = stablehlo.constant dense<0> : tensor<i32>
   %g = stablehlo.compare GT, %n, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
   stablehlo.return %g : tensor<i1>
  }} do {{
   %i = stablehlo.get_tuple_element %a[1] : ({PAIR}) -> tuple<tensor<i32>, tensor<3x4xf32>>
   %n = stablehlo.get_tuple_element %i[0] : (tuple<tensor<i32>, tensor<3x4xf32>>) -> tensor<i32>
   %o = stablehlo.constant dense<1> : tensor<i32>
   %m = stablehlo.subtract %n, %o : tensor<i32>
   %v = "stablehlo.get_tuple_element"(%a) <{{index = 0 : i32}}> : ({PAIR}) -> tensor<3x4xf32>
   %w = stablehlo.add %v, %v : tensor<3x4xf32>
   %t = stablehlo.tuple %m, %v : tuple<tensor<i32>, tensor<3x4xf32>>
   %u = stablehlo.tuple %w, %t : {PAIR}
   stablehlo.return %u : {PAIR}
  }}
  return %3 : {PAIR}
 }}
 func.func private @twice(%p: {PAIR}) -> {PAIR} {{
  %v = stablehlo.get_tuple_element %p[0] : ({PAIR}) -> tensor<3x4xf32>
  %r = stablehlo.get_tuple_element %p[1] : ({PAIR}) -> tuple<tensor<i32>, tensor<3x4xf32>>
  %w = stablehlo.add %v, %v : tensor<3x4xf32>
  %t = stablehlo.tuple %w, %r : {PAIR}
  return %t : {PAIR}
 }}
}}"""


def test_tuples_are_their_elements() -> None:
    last, count, before = run_graph(to_graph(TUPLES.encode()), {"x": X})
    np.testing.assert_array_equal(last, X * 16)
    np.testing.assert_array_equal(before, X * 8)
    assert count == 0


def test_an_element_that_a_tuple_does_not_have() -> None:
    with pytest.raises(weft.ModelError, match=r"get_tuple_element \(line 8\): it takes element 2 of"):
        to_graph(TUPLES.replace("%a[1]", "%a[2]", 1).encode())


STATISTICS = "".join(
    f"%{n} = stablehlo.constant dense<{list(map(float, v))}> : tensor<4xf32>\n"
    for n, v in {"g": (1, 2, 3, 4), "b": (0.5, 0, -1, 2), "m": (1, 2, 3, 4), "v": (0.25, 1, 4, 9)}.items()
)
OF_FEATURES = "<{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}>"


def test_batch_norms() -> None:
    vector = "tensor<4xf32>"
    given = f'%0 = "stablehlo.batch_norm_inference"(%x, %g, %b, %m, %v) {OF_FEATURES}'
    text = f"{STATISTICS}{given} : (tensor<3x4xf32>, {', '.join([vector] * 4)}) -> tensor<3x4xf32>\n"
    own = f'%1:3 = "stablehlo.batch_norm_training"(%x, %g, %b) {OF_FEATURES}'
    text += f"{own} : (tensor<3x4xf32>, {vector}, {vector}) -> (tensor<3x4xf32>, {vector}, {vector})\n"
    text += f"return %0, %1#0, %1#1, %1#2 : tensor<3x4xf32>, tensor<3x4xf32>, {vector}, {vector}"
    scale, offset = np.array([1, 2, 3, 4], np.float32), np.array([0.5, 0, -1, 2], np.float32)

    def normalised(mean: Array, variance: Array) -> Array:
        return np.asarray((X - mean) / np.sqrt(variance + np.float32(1e-3)) * scale + offset)

    mean, variance = X.mean(0), X.var(0)
    wanted = [
        normalised(np.array([1, 2, 3, 4], np.float32), np.array([0.25, 1, 4, 9], np.float32)),
        normalised(mean, variance),
        mean,
        variance,
    ]
    for got, want in zip(run_graph(to_graph(function(text)), {"x": X}), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_several_devices() -> None:
    text = '%0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>'
    with pytest.raises(weft.ModelError) as caught:
        to_graph(function(f"{text} : (tensor<3x4xf32>) -> tensor<6x4xf32>\nreturn %0 : tensor<6x4xf32>"))
    assert str(caught.value) == (
        "all_gather (line 3): its replica_groups are those of several devices\n  hint: lower the function for one device"
    )


def test_older_operations() -> None:
    text = (
        "%t = stablehlo.transpose %x, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>\n"
        "%0 = stablehlo.dot %x, %t : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>\n"
        "%s = stablehlo.constant dense<[0, 1]> : tensor<2xi32>\n%e = stablehlo.constant dense<[3, 4]> : tensor<2xi32>\n"
        "%d = stablehlo.constant dense<[2, 1]> : tensor<2xi32>\n"
        "%1 = stablehlo.real_dynamic_slice %x, %s, %e, %d : (tensor<3x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) "
        "-> tensor<2x3xf32>\n"
        "%2 = chlo.is_pos_inf %x : tensor<3x4xf32> -> tensor<3x4xi1>\n"
        "%3 = chlo.is_neg_inf %x : tensor<3x4xf32> -> tensor<3x4xi1>\n"
        "return %0, %1, %2, %3 : tensor<3x3xf32>, tensor<2x3xf32>, tensor<3x4xi1>, tensor<3x4xi1>"
    )
    x = X.copy()
    x[0, 1], x[2, 2] = np.inf, -np.inf
    products, window, above, below = run_graph(to_graph(function(text)), {"x": x})
    np.testing.assert_array_equal(products[1, 1], x[1] @ x[1])
    np.testing.assert_array_equal(window, x[::2, 1:])
    np.testing.assert_array_equal(above, np.isposinf(x))
    np.testing.assert_array_equal(below, np.isneginf(x))
