"""The entry of a model: where constants lie, what `plan` checks and tells, and the calls that `main` makes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest
from tests.models import lstm_step, matmul, mlp

import weft
from weft.cli.onnx_builder import GraphBuilder, conv
from weft.codegen.interp import run
from weft.driver.host.entry import entry_program, place_constants
from weft.driver.host.entry_plan import NOTHING_TO_RUN, size_sources
from weft.driver.options import CompileOptions
from weft.frontends import to_graph
from weft.graph import Graph, Place, fuse, plan_memory
from weft.loop import Call, Program, statements, verify
from weft.runtime import Model
from weft.support.dtypes import f32


def entry_of(graph: Graph) -> Program:
    fused = fuse(graph)
    names = {g.key: f"kernel{n}" for n, g in enumerate(fused.groups)}
    return entry_program(fused, plan_memory(fused), place_constants(fused), names)


def plan(program: Program, arrays: Mapping[str, np.ndarray]) -> dict[str, list[int]]:
    """Runs `plan` on the inputs' shapes, and returns what it tells."""
    given = {p.name: arrays.get(p.name, np.zeros(8, np.int64)) for p in program["plan"].params}
    sized = {p.name: given[p.name][: int(p.shape[0].value)] for p in program["plan"].params}  # type: ignore[union-attr]
    run(program, list(sized.values()), "plan")
    return {name: array.tolist() for name, array in sized.items()}


def test_constants_lie_at_cache_lines_without_overlap() -> None:
    fused = fuse(to_graph(mlp()))
    constants = place_constants(fused)
    spans = sorted((at, at + c.array.nbytes) for c, at in constants.offsets.items() if c in fused.constants)
    assert all(begin % 64 == 0 for begin, _ in spans)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    assert spans[-1][1] <= constants.size


def test_the_entry_is_well_formed() -> None:
    for proto in (mlp(), matmul(constant=False), lstm_step()):
        verify(entry_of(to_graph(proto)))


def test_plan_tells_the_outputs_shapes() -> None:
    told = plan(entry_of(to_graph(mlp())), {"in0_shape": np.array([7, 24])})
    assert told["out0_shape"] == [7, 10]
    assert told["arena_needed"][0] >= 7 * (32 + 32) * 4


def test_plan_refuses_other_shapes() -> None:
    program = entry_of(to_graph(mlp()))
    with pytest.raises(weft.RuntimeFailure, match="input x: dimension 1 is 23, but the model takes 24"):
        plan(program, {"in0_shape": np.array([7, 23])})
    with pytest.raises(weft.RuntimeFailure, match="input x: dimension 0 is -1, which is no size"):
        plan(program, {"in0_shape": np.array([-1, 24])})


def test_names_with_braces_stand_in_the_messages_of_checks() -> None:
    g = Graph()
    n = g.dim("n")
    g.output(g.add("relu", [g.input("x{0}", (n, 4), f32)]), "y{}")
    g.require(n <= 5, "{0} are too many", n, source="pick {b}")
    program = entry_of(g)
    verify(program)
    with pytest.raises(weft.RuntimeFailure, match=r"input x\{0\}: dimension 1 is 3, but the model takes 4"):
        plan(program, {"in0_shape": np.array([7, 3])})
    with pytest.raises(weft.RuntimeFailure, match=r"pick \{b\}: 7 are too many"):
        plan(program, {"in0_shape": np.array([7, 4])})


def test_a_call_without_elements_runs_nothing() -> None:
    told = plan(entry_of(to_graph(mlp())), {"in0_shape": np.array([0, 24])})
    assert told["out0_shape"] == [0, 10]
    assert told["arena_needed"] == [NOTHING_TO_RUN]


def test_a_size_has_one_value() -> None:
    graph = Graph()
    n = graph.dim("n")
    x, y = graph.input("x", (n,), f32), graph.input("y", (n,), f32)
    graph.output(graph.add("add", [x, y]), "z")
    program = entry_of(graph)
    assert plan(program, {"in0_shape": np.array([5]), "in1_shape": np.array([5])})["out0_shape"] == [5]
    with pytest.raises(weft.RuntimeFailure, match="input y: dimension 0 is 4, but the model takes 5"):
        plan(program, {"in0_shape": np.array([5]), "in1_shape": np.array([4])})


def test_a_size_may_show_in_a_linear_formula_of_it() -> None:
    graph = Graph()
    n = graph.dim("n")
    graph.output(graph.add("relu", [graph.input("x", (n * 2 + 1,), f32)]), "y")
    program = entry_of(graph)
    verify(program)
    assert plan(program, {"in0_shape": np.array([7])})["out0_shape"] == [7]
    with pytest.raises(weft.RuntimeFailure, match="input x: dimension 0 is 8, but the model takes 7"):
        plan(program, {"in0_shape": np.array([8])})
    with pytest.raises(weft.RuntimeFailure, match="input x: dimension 0 is -1, which is no size"):
        plan(program, {"in0_shape": np.array([-1])})


def test_plan_checks_the_range_of_a_dimension() -> None:
    graph = Graph()
    n = graph.bounded_dim("seq", weft.Dim(8, 32, 8))
    graph.output(graph.add("relu", [graph.input("x", (n,), f32)]), "y")
    program = entry_of(graph)
    verify(program)
    assert plan(program, {"in0_shape": np.array([24])})["out0_shape"] == [24]
    for size in (0, 12, 40):
        wanted = f"input x: dimension 0, seq, is {size}, but the model was compiled for 8 to 32, a multiple of 8"
        with pytest.raises(weft.RuntimeFailure, match=wanted):
            plan(program, {"in0_shape": np.array([size])})


def test_main_calls_every_group_in_order() -> None:
    fused = fuse(to_graph(lstm_step()))
    calls = [s.callee for s in statements(entry_of(to_graph(lstm_step()))["main"].body) if isinstance(s, Call)]
    assert calls == [f"kernel{n}" for n in range(len(fused.groups))]


def test_kernels_are_given_their_workspaces_in_the_arena() -> None:
    g = GraphBuilder("one", 0)
    g.output(conv(g, g.input("x", (1, 32, 28, 28)), (32, 32)), "y")
    made = weft.build(to_graph(g.model()))
    assert sum(map(len, made.plan.workspaces.values())) > 0
    assert all(made.plan.locations[v].place is Place.ARENA for vs in made.plan.workspaces.values() for v in vs)
    first = next(k for k in made.kernels.values() if k.workspaces)
    assert 'alloc("global"' not in first.flat
    x = np.random.default_rng(0).standard_normal((1, 32, 28, 28)).astype(np.float32)
    plain = weft.build(to_graph(g.model()), options=CompileOptions(opt_level=0))
    wanted = np.asarray(Model(plain.package)(x))
    np.testing.assert_allclose(np.asarray(Model(made.package)(x)), wanted, atol=2e-5 * float(np.abs(wanted).max()))


def test_a_size_that_no_input_shows_is_refused() -> None:
    graph = Graph()
    n, m = graph.dim("n"), graph.dim("m")
    graph.output(graph.add("relu", [graph.input("x", (n * m,), f32)]), "y")
    with pytest.raises(weft.ModelError) as told:
        size_sources(graph)
    assert str(told.value) == (
        'the size n of x is not a dimension of any input\n  hint: give it a number: shapes={"n": 1}'
    )
