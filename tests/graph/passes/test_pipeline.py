"""The whole way through the graph layer: models keep their meaning, whatever the target, and become the kernels they should."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests import models
from tests.graph.checks import random_array
from tests.graph.oracle import Oracle, run_graph, run_planned
from tests.support.machines import SERVER

from weft.frontends.onnx.importer import from_onnx
from weft.graph import Array, FusedGraph, Graph, GraphReport, find_in_place, fuse, optimize, plan_memory
from weft.ir import Const
from weft.support.knobs import Switches
from weft.targets import cpu

AVX512, SSE4 = cpu("avx512"), cpu("sse4")


def inputs_of(graph: Graph) -> list[Array]:
    shapes = [[int(s.value) if isinstance(s, Const) else 3 for s in v.shape] for v in graph.inputs]
    return [random_array(s, k, v.dtype.numpy.type) for k, (s, v) in enumerate(zip(shapes, graph.inputs, strict=True))]


def fused(name: str, options: Switches | None = None, target: str = "avx512") -> FusedGraph:
    """Takes a model through the pipeline and compares the planned execution with the model's own."""
    graph = from_onnx(models.BUILDERS[name]())
    made = optimize(graph, SERVER if target == "avx512" else cpu(target), Oracle(), options or Switches(), verify=True)
    result = fuse(made)
    inputs = inputs_of(graph)
    for in_place in (None, find_in_place(result)):
        found = run_planned(result, plan_memory(result, in_place=in_place), inputs)
        for a, b in zip(run_graph(graph, inputs), found, strict=True):
            np.testing.assert_allclose(b, a, rtol=2e-4, atol=2e-5)
    return result


@pytest.mark.sampled(6)
@pytest.mark.parametrize("target", ["avx512", "sse4"])
@pytest.mark.parametrize("name", models.BUILDERS)
def test_models_keep_their_meaning(name: str, target: str) -> None:
    fused(name, target=target)


@pytest.mark.parametrize("name", ["tiny_resnet", "tiny_bert_layer"])
@pytest.mark.parametrize(
    "options", [Switches(without=("layout",)), Switches(opt_level=1), Switches(precision="strict")]
)
def test_options_keep_the_meaning(name: str, options: Switches) -> None:
    fused(name, options)


def groups(name: str) -> list[str]:
    return ["+".join(n.op for n in g.nodes) for g in fused(name).groups]


def test_kernels_of_a_residual_network() -> None:
    assert groups("tiny_resnet") == [
        "conv2d_blocked+relu",
        "max_pool2d",
        "conv2d_blocked+relu",
        "conv2d_blocked+add+relu",
        "conv2d_blocked+relu",
        "conv2d_blocked",
        "conv2d_blocked+add+relu",
        "reduce_mean",
        "matmul_packed",
    ]


def test_kernels_of_a_transformer_layer() -> None:
    found = groups("tiny_bert_layer")
    assert found.count("layer_norm") == 2
    assert "transpose+matmul_packed+mul+add" in found
    assert "matmul_packed+add+mul+erf+add+mul+mul" in found
    assert "reshape" not in "+".join(found)


def test_kernels_of_an_lstm_step() -> None:
    assert groups("lstm_step") == [
        "matmul_packed",
        "matmul_packed+add",
        "sigmoid+mul+sigmoid+tanh+mul+add",
        "sigmoid+tanh+mul",
    ]


def test_equal_layers_share_their_kernel() -> None:
    graph = from_onnx(models.tiny_gpt2_decode(layers=3))
    result = fuse(optimize(graph, AVX512, Oracle()))
    per_layer = (len(result.groups) - len({g.key for g in result.groups})) / 2
    assert per_layer >= 10


def test_the_pipeline_settles() -> None:
    for name in models.BUILDERS:
        once = optimize(from_onnx(models.BUILDERS[name]()), SSE4, Oracle())
        twice = optimize(once, SSE4, Oracle())
        assert [n.op for n in twice.nodes] == [n.op for n in once.nodes]


def test_each_pass_is_timed() -> None:
    reports: list[GraphReport] = []
    optimize(from_onnx(models.mlp()), AVX512, Oracle(), trace=reports.append)
    assert [r.name for r in reports][-2:] == ["bound_buffers", "fold_packed_constants"]
    assert all(r.seconds >= 0 for r in reports)
    assert re.fullmatch(r"replace_empty_tensors +\d+\.\d\d ms +5 nodes \(unchanged\)", reports[0].line())


def statuses(switches: Switches) -> dict[str, str]:
    reports: list[GraphReport] = []
    optimize(from_onnx(models.BUILDERS["tiny_resnet"]()), AVX512, Oracle(), switches, trace=reports.append)
    return {r.name: r.status for r in reports}


def test_a_pass_that_is_off_is_skipped() -> None:
    everything = statuses(Switches())
    assert "skipped" not in everything.values()
    assert everything["choose_layouts"] == "changed"
    off = {
        "winograd": Switches(without=("winograd",)),
        "layout": Switches(without=("layout",)),
        "prepacking": Switches(without=("prepacking",)),
        "strict": Switches(precision="strict"),
        "level 2": Switches(opt_level=2),
        "level 1": Switches(opt_level=1),
    }
    skipped = {name: {p for p, s in statuses(switches).items() if s == "skipped"} for name, switches in off.items()}
    bytes_of_weights = {"pack_low_bits", "choose_dot_products", "place_weight_dequantization"}
    winograd = {
        "lower_dilated_convolutions",
        *("choose_winograd", "choose_integer_winograd", "choose_transposed_winograd"),
    }
    assert skipped == {
        "winograd": winograd,
        "layout": {"lower_volume_convolutions", "lower_dilated_convolutions", "choose_layouts"},
        "prepacking": {"fold_packed_constants"},
        "strict": winograd - {"choose_integer_winograd"}
        | {
            "lower_volume_convolutions",
            "recognize_layer_norm",
            "fold_scale_and_shift",
            "fold_dequantization",
            "place_weight_dequantization",
            "narrow_convolutions",
            "round_attention",
            "split_prefixes",
        },
        "level 2": winograd | {"lower_volume_convolutions", "choose_layouts"},
        "level 1": winograd
        | {"lower_volume_convolutions"}
        | {"choose_layouts", "combine_products", "block_attention", "pack_matrices", "round_attention", "round_beside"}
        | bytes_of_weights,
    }
    ran = {name for name, status in statuses(Switches(opt_level=0)).items() if status != "skipped"}
    assert ran == {"replace_empty_tensors", "eliminate_dead_code", "guard_indices", "bound_buffers"}
