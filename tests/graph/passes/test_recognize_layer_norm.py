"""Layer normalizations spelt out in other operators."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops, scalar

from weft.graph import Graph, Value, match
from weft.graph.passes.recognize_layer_norm import recognize_layer_norm
from weft.support.dtypes import f32


def mean(g: Graph, x: Value, axes: tuple[int, ...] = (-1,), keepdims: bool = True) -> Value:
    return g.add("reduce_mean", [x], axes=axes, keepdims=keepdims)


def variance(g: Graph, c: Value, axes: tuple[int, ...] = (-1,)) -> Value:
    return g.add("add", [mean(g, g.add("mul", [c, c]), axes), scalar(g, 1e-3)])


def scaled(g: Graph, y: Value) -> Value:
    return g.add("add", [constant(g, 6), g.add("mul", [y, constant(g, 6)])])


def by_root(g: Graph, x: Value) -> Value:
    c = g.add("sub", [x, mean(g, x)])
    return scaled(g, g.add("div", [c, g.add("sqrt", [variance(g, c)])]))


def by_powers(g: Graph, x: Value) -> Value:
    c = g.add("sub", [x, mean(g, x, (2,))])
    v = g.add("add", [scalar(g, 1e-3), mean(g, g.add("power", [c, scalar(g, 2.0)]))])
    return scaled(g, g.add("div", [c, g.add("power", [v, scalar(g, 0.5)])]))


def by_reciprocal(g: Graph, x: Value) -> Value:
    c = g.add("sub", [x, mean(g, x)])
    return scaled(g, g.add("mul", [g.add("reciprocal", [g.add("sqrt", [variance(g, c)])]), c]))


@pytest.mark.parametrize("build", [by_root, by_powers, by_reciprocal])
def test_spellings(build: Callable[[Graph, Value], Value]) -> None:
    g = Graph()
    made = apply_pass(one_output(g, build(g, g.input("x", (2, 3, 6), f32))), recognize_layer_norm)
    assert ops(made) == ["layer_norm"]
    assert made.nodes[0].attribute("epsilon") == pytest.approx(1e-3)


def other_axis(g: Graph, x: Value) -> Value:
    c = g.add("sub", [x, mean(g, x, (1,))])
    return scaled(g, g.add("div", [c, g.add("sqrt", [variance(g, c, (1,))])]))


def other_mean(g: Graph, x: Value) -> Value:
    c = g.add("sub", [x, mean(g, g.add("relu", [x]))])
    return scaled(g, g.add("div", [c, g.add("sqrt", [variance(g, c)])]))


def other_squares(g: Graph, x: Value) -> Value:
    c = g.add("sub", [x, mean(g, x)])
    return scaled(g, g.add("div", [c, g.add("sqrt", [variance(g, x)])]))


def other_power(g: Graph, x: Value) -> Value:
    c = g.add("sub", [x, mean(g, x)])
    v = g.add("add", [mean(g, g.add("power", [c, scalar(g, 4.0)])), scalar(g, 1e-3)])
    return scaled(g, g.add("div", [c, g.add("sqrt", [v])]))


@pytest.mark.parametrize("build", [other_axis, other_mean, other_squares, other_power])
def test_what_only_looks_like_one_is_kept(build: Callable[[Graph, Value], Value]) -> None:
    g = Graph()
    one_output(g, build(g, g.input("x", (2, 6, 6), f32)))
    assert recognize_layer_norm(g) is g


def test_match_takes_operands_in_either_order() -> None:
    g = Graph()
    x, y = g.input("x", (2,), f32), g.input("y", (2,), f32)
    v = g.add("mul", [g.add("sqrt", [x]), y])
    assert match(("mul", "b", ("sqrt", "a")), v) == {"a": x, "b": y}
    assert match(("mul", "a", ("sqrt", "a")), v) is None
    assert match(("mul", "a", ("exp", "b")), v) is None
    assert match("anything", v) == {"anything": v}
    assert match("anything", None) is None
