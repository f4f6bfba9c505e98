"""Random operators and dropout: types, distributions, seeds, streams, and the same numbers whatever runs the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from tests.frontends.onnx.nodes import model_of, node
from tests.graph.composites.test_random_numbers import check_distribution
from tests.host_programs import interpret_model, linked

import weft
from weft.driver.build import Compilation, build
from weft.driver.checking.check_model import check_model
from weft.driver.checking.reference import run_graph
from weft.driver.host_model import replay_model
from weft.driver.options import CompileOptions
from weft.graph import host_nodes
from weft.runtime import Model
from weft.targets import host, parse_target

COUNT = 20000
FLOAT, F16, BF16, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE
INT32, INT64, BOOL = TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL
TYPES: dict[int, Any] = {
    kind: helper.tensor_dtype_to_np_dtype(kind) for kind in (FLOAT, F16, BF16, DOUBLE, INT32, INT64, BOOL)
}
TOLERANCES: dict[int, float] = {F16: 1e-3, BF16: 8e-3}

Shares = Callable[[float], float]
NORMAL = NormalDist(3, 2).cdf
UNIFORM: Shares = lambda v: (v + 1) / 4  # noqa: E731
DRAWN: dict[str, tuple[dict[str, float], Shares]] = {
    "RandomNormal": ({"mean": 3.0, "scale": 2.0}, NORMAL),
    "RandomUniform": ({"low": -1.0, "high": 3.0}, UNIFORM),
}


def compiled(nodes: Sequence[NodeProto], inputs: Any = (), outputs: Sequence[str] = ("y",), **more: Any) -> Any:
    return weft.compile(model_of(nodes, dict(inputs), outputs, opset=22, **more), threads=1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [FLOAT, DOUBLE, F16, BF16])
@pytest.mark.parametrize("op", DRAWN)
def test_types_and_distributions(op: str, kind: int) -> None:
    options, share_below = DRAWN[op]
    model = compiled(
        [node(op, "", "y", shape=[COUNT], dtype=kind, seed=1.0, **options), node(f"{op}Like", "x", "z", **options)],
        {"x": (kind, ["n"])},
        ["y", "z"],
    )
    for found in model(np.zeros(COUNT, TYPES[kind])):
        assert (found.shape, found.dtype) == ((COUNT,), TYPES[kind])
        if kind in (FLOAT, DOUBLE):
            check_distribution(found, share_below)
        wide = found.astype(np.float64)
        assert abs(wide.mean() - (3 if op == "RandomNormal" else 1)) < 0.1
        assert abs(wide.std() - (2 if op == "RandomNormal" else 4 / 12**0.5)) < 0.05


def test_defaults() -> None:
    plain = compiled([node("RandomNormal", "", shape=[2, 3], seed=1.0)])()
    assert (plain.shape, plain.dtype) == ((2, 3), np.float32)
    like = compiled([node("RandomUniformLike", "x", dtype=DOUBLE)], {"x": (INT64, ["n", 2])})
    assert (made := like(np.zeros((5, 2), np.int64))).shape == (5, 2)
    assert made.dtype == np.float64
    assert made.min() >= 0
    with pytest.raises(weft.ModelError, match="its random numbers are of i64") as told:
        compiled([node("RandomNormalLike", "x")], {"x": (INT64, [2])})
    assert told.value.hint is not None
    assert "dtype" in told.value.hint


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", [FLOAT, DOUBLE, F16, INT32, INT64, BOOL])
@pytest.mark.parametrize("source", [FLOAT, DOUBLE, F16])
def test_bernoulli(source: int, kind: int) -> None:
    p = np.repeat([0.0, 0.25, 1.0], COUNT).reshape(3, COUNT).astype(TYPES[source])
    made = compiled([node("Bernoulli", "p", dtype=kind)], {"p": (source, [3, COUNT])})(p)
    assert (made.shape, made.dtype) == (p.shape, TYPES[kind])
    assert set(np.unique(made.astype(np.float64))) == {0, 1}
    shares = made.astype(np.float64).mean(axis=1)
    assert shares[0] == 0
    assert shares[2] == 1
    assert abs(shares[1] - 0.25) < 0.02


@pytest.mark.parametrize("source", [FLOAT, DOUBLE, F16])
def test_multinomial(source: int) -> None:
    weights = np.array([[1.0, 2.0, 5.0], [1000.0, 0.0, 1000.0]])
    with np.errstate(divide="ignore"):
        logs = np.log(weights).astype(TYPES[source])
    nodes = [node("Multinomial", "x", "y", sample_size=COUNT, dtype=INT64), node("Multinomial", "x", "z")]
    made, one = compiled(nodes, {"x": (source, ["rows", 3])}, ["y", "z"])(logs)
    assert (made.dtype, one.dtype, made.shape, one.shape) == (np.int64, np.int32, (2, COUNT), (2, 1))
    for row, wanted in zip(made, weights, strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / COUNT, wanted / wanted.sum(), atol=0.02)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [FLOAT, DOUBLE, F16, BF16])
@pytest.mark.parametrize("is_known", [True, False])
def test_dropout(kind: int, is_known: bool) -> None:
    x = np.random.default_rng(0).standard_normal((50, 400)).astype(TYPES[kind])
    given = {"r": np.array(0.25, np.float32), "t": np.array(True)}
    weights = given if is_known else {}
    inputs = {"x": (kind, ["n", 400]), **({} if is_known else {"r": (FLOAT, []), "t": (BOOL, [])})}
    model = compiled([node("Dropout", "x r t", "y mask")], inputs, ["y", "mask"], weights=weights)
    feed = {"x": x, **({} if is_known else given)}
    y, mask = model(**feed)
    assert (mask.dtype, y.dtype) == (np.bool_, x.dtype)
    assert abs(mask.mean() - 0.75) < 0.02
    wanted = np.where(mask, x.astype(np.float64) / 0.75, 0)
    np.testing.assert_allclose(y.astype(np.float64), wanted, rtol=TOLERANCES.get(kind, 1e-6))
    assert not np.array_equal(model(**feed)[1], mask)
    if not is_known:
        y, mask = model(x=x, r=given["r"], t=np.array(False))
        assert mask.all()
        np.testing.assert_array_equal(y, x)


def random_model(**seed: float) -> ModelProto:
    """Returns a model of two drawn tensors, of dropout, and of a branch and a loop that draw; its input is what is added."""
    row = helper.make_graph(
        [node("RandomUniform", "", "drawn", shape=[3], **seed), node("Identity", "go", "more")],
        "body",
        [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("go", BOOL, [])],
        [helper.make_tensor_value_info("more", BOOL, []), helper.make_tensor_value_info("drawn", FLOAT, [3])],
    )
    branches = [
        helper.make_graph(
            [node(op, "", "b", shape=[4], **seed)], op, [], [helper.make_tensor_value_info("b", FLOAT, [4])]
        )
        for op in DRAWN
    ]
    nodes = [
        node("RandomNormal", "", "n", shape=[64], **seed),
        node("Add", "n x", "a"),
        node("RandomUniformLike", "x", "b", **seed),
        node("Dropout", "b r t", "c", **{k: int(v) for k, v in seed.items()}),
        node("Loop", "count go", "rows", body=row),
        node("If", "go", "branch", then_branch=branches[0], else_branch=branches[1]),
    ]
    inputs = {"x": (FLOAT, ["n"]), "count": (INT64, []), "go": (BOOL, [])}
    return model_of(
        nodes, inputs, ["a", "b", "c", "rows", "branch"], {"r": np.array(0.5, np.float32), "t": np.array(True)}, 22
    )


FEED = {"x": np.zeros(64, np.float32), "count": np.array(40), "go": np.array(True)}


@cache
def made_of(**seed: float) -> Compilation:
    return build(random_model(**seed), options=CompileOptions(verify=True))


def model_with(**seed: float) -> Callable[..., Sequence[Any]]:
    model = Model(made_of(**seed).package, threads=1)
    return lambda **feed: model.run([feed[spec.name] for spec in model.inputs])


def same(a: Sequence[Any], b: Sequence[Any]) -> list[bool]:
    return [np.array_equal(v, w) for v, w in zip(a, b, strict=True)]


def test_calls_differ_without_a_seed() -> None:
    model = model_with()
    first, second = model(**FEED), model(**FEED)
    assert not any(same(first, second))
    weft.set_seed(7)
    calls = [model(**FEED) for _ in range(2)]
    weft.set_seed(7)
    again = [model(**FEED) for _ in range(2)]
    assert [all(same(a, b)) for a, b in zip(calls, again, strict=True)] == [True, True]
    assert not any(same(*calls))
    weft.set_seed(8)
    assert not any(same(calls[0], model(**FEED)))


def test_seeds_of_nodes_make_calls_the_same() -> None:
    model = model_with(seed=3.0)
    first = model(**FEED)
    assert all(same(first, model(**FEED)))
    assert not any(same(first, model_with(seed=4.0)(**FEED)))
    rows = first[3]
    assert (rows == rows[0]).all()  # a function of the seed alone


def test_streams_and_iterations_differ() -> None:
    model = model_with()
    _, b, _, rows, _ = model(**FEED)
    assert rows.shape == (40, 3)
    assert len(np.unique(rows)) == rows.size
    assert not np.isin(rows, b).any()
    short = model(**{**FEED, "count": np.array(3)})
    assert short[3].shape == (3, 3)
    two = compiled([node("RandomNormal", "", n, shape=[COUNT]) for n in "yz"], outputs="yz")()
    assert abs(np.corrcoef(*two)[0, 1]) < 6 / COUNT**0.5


@pytest.mark.parametrize("seed", [{}, {"seed": 3.0}], ids=["fresh", "given"])
def test_all_forms_agree(seed: dict[str, float]) -> None:
    made = made_of(**seed)
    program = linked(made)
    names = [spec.name for spec in made.package.inputs]
    forms: list[Callable[[], list[Any]]] = [
        *[lambda m=m: m.run([FEED[n] for n in names]) for m in (Model(made.package), Model(replay_model(made)))],
        lambda: interpret_model(program, made, FEED),
        lambda: run_graph(made.source, FEED),
    ]
    found = []
    for form in forms:
        weft.set_seed(0)  # with which the reference begins
        found.append(form())
    for others in found[1:]:
        for a, b in zip(found[0], others, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert all(same(found[0], found[1]))
    assert check_model(made.package, random_model(**seed), host(), CompileOptions(), {"n": 64})


def test_saved_models_name_what_they_need(tmp_path: Path) -> None:
    for seed, is_needed in (({}, True), ({"seed": 3.0}, False)):
        model = Model(made_of(**seed).package, threads=1)
        model.save(tmp_path / "m.weft")
        loaded = weft.load(tmp_path / "m.weft")
        given = [FEED[spec.name] for spec in model.inputs]
        assert (b"weft.random" in (tmp_path / "m.weft").read_bytes()) is is_needed
        weft.set_seed(1)
        wanted = model.run(given)
        weft.set_seed(1)
        assert all(same(wanted, loaded.run(given)))


def test_at_most_one_seed_is_drawn() -> None:
    assert [n.op for n in host_nodes(made_of().fused.graph)] == ["fresh_seed"]
    assert not list(host_nodes(made_of(seed=3.0).fused.graph))


def test_where_there_is_no_runtime() -> None:
    with pytest.raises(weft.InputError, match="random numbers without a seed, are computed by the runtime") as told:
        build(random_model(), parse_target("cuda"))
    assert told.value.hint is not None
    assert "give random operators the attribute seed" in told.value.hint


def test_seeds_that_are_none() -> None:
    with pytest.raises(weft.InputError, match="has more than 64 bits"):
        weft.set_seed(2**63)
