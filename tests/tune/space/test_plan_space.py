"""Points of a space stand for plans: what is known of their loops without scheduling is so once they are scheduled."""

from __future__ import annotations

import numpy as np
import pytest
from tests.replay.machines import MACHINES
from tests.support.yardstick import least_seconds

from weft.cost import PadInput, RegisterTile, Rule, Step, addressed, parse_plan
from weft.cost.rules import sketch
from weft.loop import Program
from weft.lower import lower
from weft.lower.analysis.guard_conditions import stores_in
from weft.ops import OPERATORS
from weft.schedule import apply_plan, schedule_program
from weft.support.dtypes import f32
from weft.te import placeholder, to_program
from weft.tune.features import Ints, NestBatch, nests_of_programs
from weft.tune.space import PlanSpace
from weft.tune.space.plan_space import apart

SERVER = MACHINES["avx512"]


def product(m: int, n: int, k: int) -> Program:
    inputs = (placeholder((m, k), f32, "a"), placeholder((k, n), f32, "b"))
    return to_program(inputs, OPERATORS["matmul"](inputs, {}))


def layer(channels: int, size: int, outputs: int) -> Program:
    inputs = (placeholder((1, channels, size, size), f32, "x"), placeholder((outputs, channels, 3, 3), f32, "w"))
    return to_program(inputs, OPERATORS["conv2d"](inputs, {"pads": (1, 1, 1, 1)}))


PROGRAMS = {"product": product(24, 96, 40), "layer": layer(8, 24, 12), "one channel": layer(1, 24, 12)}
SKETCH = {
    "product": [Step("matmul", Rule("sketch"))],
    "layer": [Step("conv2d", Rule("sketch"))],
    "one channel": [Step("conv2d", Rule("sketch"))],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_point_is_a_plan_that_reads_back(name: str) -> None:
    space = PlanSpace(PROGRAMS[name], SERVER)
    for point in space.sample(np.random.default_rng(0), 6):
        scheduled, plan = space.schedule(point)
        again = apply_plan(PROGRAMS[name], parse_plan(str(plan)))
        assert str(again.program) == str(scheduled.program)
        assert (space.point_of(space.open_plan(point)) == point).all()


def test_a_plan_for_other_sizes_has_a_point_nearby() -> None:
    """What is no alternative here, such as the tile of a larger extent, gives way to the nearest of its kind."""
    small, large = (PlanSpace(product(*sizes), SERVER, SKETCH["product"]) for sizes in ((24, 96, 40), (48, 160, 80)))
    rng = np.random.default_rng(3)
    for point in small.sample(rng, 8):
        assert (small.nearest_point(small.open_plan(point)) == small.point_of(small.open_plan(point))).all()
    moved = 0
    for point in large.sample(rng, 8):
        plan = large.open_plan(point)
        answers = addressed(plan.steps)
        for knob, exact, near in zip(small.knobs, small.point_of(plan), small.nearest_point(plan), strict=True):
            wanted = answers.get(knob.address)
            if wanted is None or wanted in knob.domain:
                assert exact == near
                continue
            moved += 1
            distances = [apart(d, wanted) for d in knob.domain]
            assert distances[near] == min(distances)
    assert moved > 8


def test_how_far_decisions_are_apart() -> None:
    assert apart(RegisterTile((8, 16)), RegisterTile((8, 16))) == 0
    assert apart(RegisterTile((8, 16)), RegisterTile((4, 32))) == 2
    assert apart(RegisterTile((8, 16)), RegisterTile((8, 24))) < apart(RegisterTile((8, 16)), RegisterTile((8, 48)))
    assert apart(Rule("sketch"), Rule("tiled")) == 1
    assert apart(RegisterTile((8, 16)), RegisterTile((8, 16, 2))) > 4


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_default_point_is_what_the_rules_choose(name: str) -> None:
    space = PlanSpace(PROGRAMS[name], SERVER)
    assert str(space.schedule(space.default)[0].program) == str(schedule_program(PROGRAMS[name], SERVER).program)


def test_spaces_are_large() -> None:
    space = PlanSpace(layer(64, 28, 64), SERVER, [Step("conv2d", Rule("sketch"))])
    assert space.count > 1e5
    assert all(len(set(k.domain)) == len(k.domain) > 1 for k in space.knobs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_plans_are_counted_once(name: str) -> None:
    """Of a knob that another decision makes without effect, one alternative is a plan of its own."""
    whole = PlanSpace(PROGRAMS[name], SERVER)
    large = [Step(k.address[0], k.domain[k.default]) for k in whole.knobs if len(k.domain) > 3]
    space = PlanSpace(PROGRAMS[name], SERVER, large)
    points = np.indices(space.sizes).reshape(len(space.sizes), -1).T
    assert len(points) > space.count == len(np.unique(space.canonical(points), axis=0))


def loops_of(batch: NestBatch, row: int) -> list[tuple[int, int, int]]:
    """The loops of one plan that repeat: axis, extent and step."""
    found = zip(batch.axis[row], batch.extent[row], batch.step[row], strict=True)
    return [(int(a), int(e), int(s)) for a, e, s in found if e > 1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_of_sketches_are_those_of_the_scheduled_programs(name: str) -> None:
    space = PlanSpace(PROGRAMS[name], SERVER, SKETCH[name])
    points = space.sample(np.random.default_rng(1), 12)
    told = space.nests(points)
    assert space.tiled is not None
    for n, point in enumerate(points):
        made = nests_of_programs([space.schedule(point)[0].program], space.tiled.block.name)
        assert loops_of(told, n) == loops_of(made, 0), str(space.open_plan(point))


@pytest.mark.timed
def test_features_of_a_thousand_points_take_half_a_second() -> None:
    space = PlanSpace(layer(64, 28, 64), SERVER, [Step("conv2d", Rule("sketch"))])
    points = space.sample(np.random.default_rng(2), 1000)
    assert len(space.features(points)) == 1000
    assert least_seconds(lambda: space.features(points), 0.5) < 0.5


def test_a_space_without_knobs_has_one_plan() -> None:
    """As when a kernel is so small that each question has one answer."""
    whole = PlanSpace(PROGRAMS["product"], SERVER)
    space = PlanSpace(PROGRAMS["product"], SERVER, whole.schedule(whole.default)[1].steps)
    assert (space.count, len(space.knobs)) == (1, 0)
    points = space.sample(np.random.default_rng(0), 3)
    assert len(space.features(points)) == len(points)
    assert len(set(space.keys(points))) == 1


def test_versions_of_a_tile_are_no_blow_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remainders, padding and unrolled steps of one sketch multiply its code up to a bound."""
    program = layer(8, 24, 12)
    space = PlanSpace(program, SERVER, [*SKETCH["layer"], Step("pad", PadInput(inline=True, by_tile=False))])
    points = space.sample(np.random.default_rng(1), 8)[[3, 7]]
    assert max([stores_of(space, p) for p in points]) <= sketch.MOST_WRITTEN
    monkeypatch.setattr(sketch, "MOST_WRITTEN", 1 << 30)
    assert min([stores_of(space, p) for p in points]) > 1600


def stores_of(space: PlanSpace, point: Ints) -> int:
    """Returns how many stores the lowered code of *point* has, loops that are written out counted in full."""
    flat = lower(space.schedule(point)[0].program, SERVER)
    return sum(stores_in(f.body) for f in flat.functions)
