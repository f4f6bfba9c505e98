"""Each optimization can be left out: other kernels, the same results."""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np
import pytest
from tests.support.machines import AMX

import weft
from weft.cli.demo_models import basic_block
from weft.cli.onnx_builder import GraphBuilder, gemm
from weft.driver.build import Compilation, build
from weft.driver.kernel_request import KernelRequest
from weft.driver.options import CompileOptions, check_options
from weft.ir import Const
from weft.loop import parse_program, print_program
from weft.lower import serialize_loops
from weft.support.errors import InputError
from weft.support.knobs import KNOBS, PARTS, PRETUNED, VERSIONS, check_knobs
from weft.targets import cpu, host
from weft.targets.scopes import CPU_SCOPES

ON = "everything"

OPTIMIZATIONS = [name for name in KNOBS if name not in (PRETUNED.name, VERSIONS.name, PARTS.name)]
"""Those that show on every machine for known sizes; tests have no pack of records."""


@cache
def network() -> bytes:
    """A residual block of convolutions that are worth Winograd's method and two threads, and a dense layer."""
    g = GraphBuilder("network", 0)
    x = basic_block(g, g.input("x", (1, 32, 28, 28)), (32, 32), stride=1)
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    g.output(gemm(g, x, (32, 48)), "y")
    return bytes(g.model().SerializeToString())


@cache
def built(without: str) -> Compilation:
    return build(network(), options=CompileOptions(without=() if without == ON else (without,)))


def hashes(made: Compilation) -> set[str]:
    """The machine code of all kernels."""
    return {hashlib.sha256(k.module.data).hexdigest() for k in made.kernels.values()}


def image(made: Compilation) -> str:
    """The machine code of the model, kernels and what calls them."""
    assert isinstance(made.package.image, bytes | memoryview)
    return hashlib.sha256(made.package.image).hexdigest()


def outputs(made: Compilation) -> np.ndarray:
    x = np.random.default_rng(1).standard_normal((1, 32, 28, 28)).astype(np.float32)
    return np.asarray(weft.Model(made.package, threads=2)(x))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("knob", [k for k in OPTIMIZATIONS if k != "memory"])
def test_other_kernels_without_it(knob: str) -> None:
    assert hashes(built(knob)) != hashes(built(ON))


@pytest.mark.parametrize("knob", OPTIMIZATIONS)
def test_other_machine_code_without_it(knob: str) -> None:
    """Where memory lies is told by the code that calls the kernels, not by theirs."""
    assert image(built(knob)) != image(built(ON))


@pytest.mark.parametrize("knob", OPTIMIZATIONS)
def test_the_same_results_without_it(knob: str) -> None:
    got, wanted = outputs(built(knob)), outputs(built(ON))
    assert np.abs(got - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_without_fusion_each_operator_is_a_kernel() -> None:
    assert all(len(g.nodes) == 1 for g in built("fusion").fused.groups)
    assert any(len(g.nodes) > 1 for g in built(ON).fused.groups)


def test_without_winograd_or_layout_there_is_none() -> None:
    ops = {knob: {n.op for n in built(knob).fused.graph.nodes} for knob in (ON, "winograd", "layout")}
    assert "conv2d_winograd" in ops[ON]
    assert "conv2d_winograd" not in ops["winograd"] | ops["layout"]
    assert "conv2d_blocked" in ops["winograd"]
    assert "conv2d_blocked" not in ops["layout"]


def test_without_prepacking_each_call_packs() -> None:
    packs = {
        knob: {n.op for n in built(knob).fused.graph.nodes if n.op.startswith("pack_")} for knob in (ON, "prepacking")
    }
    assert packs["prepacking"] > packs[ON]


def test_without_parts_products_are_of_whole_factors() -> None:
    g = GraphBuilder("network", 0)
    g.output(gemm(g, g.input("x", (128, 768)), (768, 768)), "y")
    found = [
        build(g.model(), machine, options=CompileOptions(without=off)).fused.graph.nodes
        for machine, off in ((AMX, ()), (AMX, ("parts",)), (cpu("avx512").having(scopes=CPU_SCOPES), ()))
    ]
    assert [any(n.op == "matmul_in_parts" for n in nodes) for nodes in found] == [True, False, False]


def test_without_the_memory_plan_nothing_is_used_twice() -> None:
    large, small = built("memory").plan, built(ON).plan
    assert not large.in_place
    assert isinstance(large.size, Const)
    assert isinstance(small.size, Const)
    assert large.size.value == sum(b.size for b in large.buffers)
    assert small.size.value < large.size.value


def test_without_parallel_no_loop_is() -> None:
    assert any("parallel(" in k.scheduled for k in built(ON).kernels.values())
    assert not any("parallel(" in k.scheduled for k in built("parallel").kernels.values())
    request = KernelRequest("f", lambda: ((), ()))
    alone = KernelRequest("f", lambda: ((), ()), parallel=False)
    assert request.key(host()) != alone.key(host())


def test_serialize_loops() -> None:
    text = """def f(a: f32[8, 8]):
    for i in {}(0, 8):
        for j in vectorized(0, 8):
            a[i, j] = f32(1)
"""
    program = parse_program(text.format("parallel"))
    assert print_program(serialize_loops(program)) == print_program(parse_program(text.format("range")))


def test_names() -> None:
    assert check_knobs(("winograd", "fusion", "winograd")) == ("fusion", "winograd")
    assert check_options(without="layout").without == ("layout",)
    with pytest.raises(InputError, match="there is no optimization 'magic' to do without") as refused:
        check_knobs(["magic"])
    assert refused.value.hint == f"use {', '.join(KNOBS)}"


def test_an_option_of_compile() -> None:
    model = weft.compile(network(), cache=False, without=["parallel", "winograd"])
    assert np.shape(model(np.zeros((1, 32, 28, 28), np.float32))) == (1, 48)
