"""What a kernel has to do, how long it takes in its model, and what is said of that."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.models import lstm_step, mlp, random_inputs, tiny_bert_layer, tiny_resnet

import weft
from weft.driver.build import Compilation, build
from weft.driver.measure.profile import Profiler
from weft.driver.measure.roofline import Level, Roofs, Standing, place_kernels, work_of
from weft.driver.measure.work import Work, count_work
from weft.loop import parse_program
from weft.support.dtypes import bf16
from weft.support.errors import InputError

ROOFS = Roofs(100.0, [Level("L1", 1e3, 400.0), Level("L2", 1e6, 100.0), Level("DRAM", float("inf"), 10.0)])


def work(text: str) -> Work:
    return count_work(parse_program(text).entry)


def test_work_of_a_matrix_product() -> None:
    found = work("""def f(a: f32[4, 8], b: f32[8, 16], c: f32[4, 16]):
    for i in range(0, 4):
        for j in range(0, 16):
            c[i, j] = f32(0)
            for k in range(0, 8):
                c[i, j] = c[i, j] + a[i, k] * b[k, j]
""")
    assert found.operations == 2 * 4 * 8 * 16
    assert found.moved == {"a": 4 * 4 * 8, "b": 4 * 8 * 16, "c": 4 * 4 * 16}
    assert found.nbytes == 4 * (32 + 128 + 64)


def test_products_of_narrow_factors_have_a_limit_of_their_own() -> None:
    found = work("""def f(a: bf16[8], b: bf16[8], c: f32[1]):
    c[0] = f32(0)
    for k in range(0, 8):
        c[0] = c[0] + f32(a[k]) * f32(b[k])
""")
    assert (found.operations, found.narrow) == (16, {bf16: 16})
    assert Roofs(2.0, ROOFS.levels).seconds(found) == 8e-9
    assert Roofs(2.0, ROOFS.levels, {bf16: 8.0}).seconds(found) == 2e-9


def test_indices_are_no_work_and_unread_rows_are_not_moved() -> None:
    found = work("""def f(table: f32[1000, 8], rows: i64[2], y: f32[2, 8]):
    for i in range(0, 2):
        for j in range(0, 8):
            y[i, j] = table[rows[i] + 0 * j, j] * f32(2)
""")
    assert found.operations == 16
    assert found.moved["table"] == 4 * 16


def test_open_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="the work is not known while the dimension n is dynamic"):
        work("def f(x: f32[n], n: i64):\n    for i in range(0, n):\n        x[i] = f32(1)\n")


@cache
def made(name: str) -> Compilation:
    models: dict[str, Any] = {
        "resnet": tiny_resnet(),
        "bert": tiny_bert_layer(),
        "lstm": lstm_step(),
        "mlp": mlp(batch=4),
    }
    return build(models[name].SerializeToString())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["resnet", "bert", "lstm"])
def test_profiled_kernels_compute_the_model(name: str) -> None:
    models: dict[str, Any] = {"resnet": tiny_resnet, "bert": tiny_bert_layer, "lstm": lstm_step}
    x = random_inputs(models[name]())
    profiler = Profiler(made(name), x)
    profiler.run()
    wanted = weft.Model(made(name).package, threads=1)(**x)
    for got, y in zip(profiler.outputs, wanted if isinstance(wanted, tuple) else [wanted], strict=True):
        np.testing.assert_array_equal(got, y)
    times = profiler.measure(0.05).kernels
    assert len(times) == len(made(name).fused.groups)
    assert all(0 <= t < 1 for t in times)


def test_open_models_are_refused() -> None:
    opened = build(mlp().SerializeToString())
    with pytest.raises(InputError, match=r"^the dimension batch is dynamic"):
        Profiler(opened, {"x": np.zeros((2, 24), np.float32)})


def test_every_kernel_has_a_place() -> None:
    found = place_kernels(made("mlp"), random_inputs(mlp(batch=4)), ROOFS, seconds=0.05)
    assert sum(s.calls for s in found) == len(made("mlp").fused.groups)
    assert [s.calls * s.seconds for s in found] == sorted((s.calls * s.seconds for s in found), reverse=True)
    products = 2 * 4 * (24 * 32 + 32 * 32 + 32 * 10)
    assert products <= sum(s.calls * s.operations for s in found) < 1.2 * products
    for s in found:
        assert list(s.limits) == ["arithmetic", "weights from L2", "activations from L2"]


def test_work_is_that_of_the_formulas() -> None:
    group = made("mlp").fused.groups[0]
    found = work_of(group, made("mlp").target)
    weight = next(n for n, v in enumerate(group.inputs) if v.rank > 1 and n > 0)
    assert found.moved[f"p{weight}"] >= 4 * 24 * 32


def standing(seconds: float, compute: float, weights: float, activations: float) -> Standing:
    limits = {"arithmetic": compute, "weights from DRAM": weights, "activations from L2": activations}
    return Standing("k", "k", 2, seconds, 1e6, 1e5, limits)


def test_in_words() -> None:
    assert standing(1e-3, 9e-4, 1e-4, 2e-4).bound == "arithmetic: 90% of what the machine can do"
    assert standing(1e-3, 1e-4, 6e-4, 2e-4).bound == "weights from DRAM: 80% of what the machine can do"
    assert standing(1e-3, 1e-4, 1e-4, 2e-4).bound == (
        "activations from L2, with memory at 30% of its bandwidth; arithmetic is not near its peak"
    )
    assert standing(1e-3, 6.2e-4, 1e-4, 2e-4).bound == (
        "arithmetic, at 62% of its peak; no level of memory is near its limit"
    )
    assert standing(2e-6, 1e-6, 0.0, 0.0).bound == "too short for anything but its own start and end"


def test_figures() -> None:
    s = standing(1e-3, 5e-4, 1e-4, 2e-4)
    assert (s.rate, s.intensity, s.limit, s.share) == (1.0, 10.0, 5e-4, 0.5)
    assert ROOFS.level(1e3).name == "L1"
    assert ROOFS.level(2e6).name == "DRAM"
