"""Loops and branches of symbols that MXNet made, by `make_control_flow.py`, against NumPy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from tests.frontends.mxnet.saved import Array, save

import weft
from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

FOLDER: Final = Path(__file__).parent / "control_flow"
RNG: Final = np.random.default_rng(0)


def random(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


W: Final = random(2, 3)


def symbol(name: str) -> str:
    return (FOLDER / f"{name}-symbol.json").read_text()


def results(folder: Path, name: str, given: Mapping[str, Array]) -> list[Array]:
    graph = to_graph(save(folder, symbol(name), {"w": W}), {n: a.shape for n, a in given.items()})
    return [np.asarray(y) for y in run_graph(graph, dict(given))]


@pytest.mark.parametrize("count", [3, 40])
def test_a_body_for_each_element(count: int, tmp_path: Path) -> None:
    x, h = random(count, 2, 3), random(2, 3)
    rows, last = results(tmp_path, "foreach", {"x": x, "h": h})
    for k in range(count):
        h = np.tanh(x[k] + h)
        np.testing.assert_allclose(rows[k], h * W, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last, h, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("first", "trips"), [(0, 5), (3, 2), (9, 0), (-20, 8)])
def test_a_body_as_long_as_a_condition_holds(first: int, trips: int, tmp_path: Path) -> None:
    b = random(2, 3)
    rows, counter, last = results(tmp_path, "while_loop", {"a": np.array([first], np.float32), "b": b})
    assert rows.shape == (8, 2, 3)
    np.testing.assert_allclose(rows[:trips], [2 * (b + k * W) for k in range(trips)] or rows[:0], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(rows[trips:], 0)
    np.testing.assert_array_equal(counter, [first + trips])
    np.testing.assert_allclose(last, b + trips * W, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shift", [-10, 10])
def test_one_of_two_bodies(shift: int, tmp_path: Path) -> None:
    a, b = random(2, 3) + shift, random(2, 3)
    (y,) = results(tmp_path, "cond", {"a": a, "b": b})
    np.testing.assert_allclose(y, a * W if a.sum() < 5 else a + b, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "attribute", "said"),
    [
        ("foreach", {"in_data_locs": "[7]"}, "its attribute in_data_locs is '[7]', not the places of its inputs"),
        ("while_loop", {"func_var_locs": "[9]"}, "its attribute func_var_locs is '[9]', not the places of its inputs"),
        ("cond", {"then_input_locs": "[1]"}, "it gives 1 values for 2 variables"),
    ],
)
def test_places_that_are_not_those_of_inputs(name: str, attribute: dict[str, str], said: str, tmp_path: Path) -> None:
    found = json.loads(symbol(name))
    next(n for n in found["nodes"] if "subgraphs" in n)["attrs"].update(attribute)
    names = [n["name"] for n in found["nodes"] if n["op"] == "null" and n["name"] != "w"]
    with pytest.raises(weft.ModelError) as caught:
        to_graph(save(tmp_path, json.dumps(found), {"w": W}), dict.fromkeys(names, (2, 3)))
    assert said in str(caught.value)


def test_what_a_body_needs_and_weft_lacks_is_named(tmp_path: Path) -> None:
    text = symbol("foreach").replace('"tanh"', '"no_such_operator"')
    with pytest.raises(weft.UnsupportedOperators, match="no_such_operator, 2 nodes: tanh0, tanh1"):
        to_graph(save(tmp_path, text, {"w": W}), {"x": (3, 2, 3), "h": (2, 3)})
