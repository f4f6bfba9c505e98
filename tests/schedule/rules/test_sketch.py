"""Any sketch of a reduction is right, whatever its sizes and orders; no rule gives way to one unless a search wants it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from tests.replay.machines import MACHINES
from tests.schedule.compiling import HERE
from tests.schedule.fuzz.choices import all_loops
from tests.schedule.running import same_results
from tests.support.jit import load

from weft.cost import Candidate, Choosing, Decision, PadInput, RegisterTile, Rule, SkipPadding, cheapest, size_of
from weft.loop import LoopKind, Program
from weft.lower import lower
from weft.ops import OPERATORS
from weft.ops.convolutions.conv import conv2d_blocked
from weft.schedule import apply_plan, carry_out
from weft.support.dtypes import f32
from weft.te import placeholder, to_program

SERVER = MACHINES["avx512"]


def program_of(op: str, *shapes: tuple[int, ...], **attributes: Any) -> Program:
    inputs = [placeholder(shape, f32, name) for shape, name in zip(shapes, "abc", strict=False)]
    return to_program(inputs, OPERATORS[op](inputs, attributes))


def blocked_conv2d(image: tuple[int, ...], weights: tuple[int, ...]) -> Program:
    x, w = placeholder(image, f32, "x"), placeholder(weights, f32, "w")
    return to_program([x, w], [conv2d_blocked(x, w, pads=(1, 1, 1, 1))], "conv")


PROGRAMS = {
    "matmul": program_of("matmul", (7, 12), (12, 37)),
    "batched": program_of("matmul", (2, 5, 6), (2, 6, 18)),
    "one row": program_of("matmul", (1, 48), (48, 40)),
    "conv2d": program_of(
        "conv2d", (1, 3, 9, 21), (4, 3, 3, 3), strides=(1, 1), pads=(1, 1, 1, 1), dilations=(1, 1), group=1
    ),
    "conv2d of groups": program_of(
        "conv2d", (1, 4, 7, 18), (8, 2, 3, 3), strides=(1, 1), pads=(1, 1, 1, 1), dilations=(1, 1), group=2
    ),
    "depthwise": program_of(
        "conv2d", (1, 4, 7, 18), (4, 1, 3, 3), strides=(1, 1), pads=(1, 1, 1, 1), dilations=(1, 1), group=4
    ),
    "blocked conv2d": blocked_conv2d((1, 2, 7, 7, 16), (2, 2, 3, 3, 16, 16)),
    "reduce_sum": program_of("reduce_sum", (6, 5, 33), axes=(1,), keepdims=False),
}


def sketching(seed: int) -> Any:
    source = random.Random(seed)

    def choose(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        sketch = next((c for c in candidates if c.decision == Rule("sketch")), None)
        return sketch or source.choice(candidates)

    return choose


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", PROGRAMS)
def test_any_sketch_is_right(name: str, seed: int) -> None:
    program = PROGRAMS[name]
    planner = Choosing(SERVER, sketching(seed))
    s = carry_out(program, planner)
    assert any(q.chosen.decision == Rule("sketch") for q in planner.questions)
    same_results(program, s.program)
    assert str(apply_plan(program, planner.plan).program) == str(s.program)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["matmul", "conv2d"])
def test_compiled_sketches_compute_what_the_rules_do(name: str, seed: int) -> None:
    program = PROGRAMS[name]
    made = np.random.default_rng(seed)
    arrays = [made.integers(-3, 4, [int(n) for n in shape_of(p)]).astype(np.float32) for p in program.entry.params]
    results = []
    for choose in (cheapest, sketching(seed)):
        scheduled = carry_out(program, Choosing(HERE, choose)).program
        arrays[-1][:] = 0
        load(lower(scheduled, HERE, verify=True), HERE)[1](*arrays)
        results.append(arrays[-1].copy())
    np.testing.assert_array_equal(results[1], results[0])


WAYS: dict[str, list[Decision]] = {
    "depthwise": [PadInput(True, False), PadInput(False, True), PadInput(False, False)],
    "blocked conv2d": [SkipPadding(True), SkipPadding(False)],
}


@pytest.mark.parametrize(("name", "way"), [(name, way) for name, ways in WAYS.items() for way in ways])
def test_padding_is_inlined_copied_or_skipped(name: str, way: Decision) -> None:
    def choose(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        tiles = RegisterTile((1, 2, 3, 16)), RegisterTile((1, 1, 7, 1, 16))
        wanted = [c for c in candidates if c.decision in (Rule("sketch"), *tiles, way)]
        return wanted[0] if wanted else cheapest(candidates)

    program = PROGRAMS[name]
    s = carry_out(program, planner := Choosing(SERVER, choose))
    assert way in [q.chosen.decision for q in planner.questions]
    same_results(program, s.program)
    copies = [b for b in s.blocks() if b.name.startswith("pad")]
    assert len(copies) == (0 if way in (PadInput(True, False), SkipPadding(True)) else 1)


def test_a_tile_narrower_than_a_vector_computes_no_more_than_itself() -> None:
    """Sums are aligned to the vectors of their own tile: to whole ones, a quarter of a vector would be computed four times."""
    narrow = RegisterTile((2, 4))

    def choose(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        wanted = [c for c in candidates if c.decision in (Rule("sketch"), narrow)]
        return wanted[0] if wanted else cheapest(candidates)

    s = carry_out(program_of("matmul", (8, 12), (12, 32)), Choosing(SERVER, choose))
    assert {size_of(f.extent) for f in all_loops(s) if f.kind is LoopKind.VECTORIZED} == {4}


def shape_of(param: Any) -> list[int]:
    return [int(s.value) for s in param.shape]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rule_is_chosen_before_it(name: str) -> None:
    planner = Choosing(SERVER)
    carry_out(PROGRAMS[name], planner)
    (question,) = [q for q in planner.questions if isinstance(q.chosen.decision, Rule)]
    assert question.chosen.decision != Rule("sketch")
    assert question.candidates[-1].decision == Rule("sketch")


def test_sketches_of_a_layer_are_many() -> None:
    conv = program_of(
        "conv2d", (1, 64, 28, 28), (64, 64, 3, 3), strides=(1, 1), pads=(1, 1, 1, 1), dilations=(1, 1), group=1
    )
    planner = Choosing(SERVER, sketching(0))
    carry_out(conv, planner)
    assert prod(len(q.candidates) for q in planner.questions) > 1e5
