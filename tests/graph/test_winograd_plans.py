"""Which plans of Winograd's method are cheaper than a direct convolution, by what they move and multiply."""

from __future__ import annotations

from dataclasses import replace

from tests.graph.machines import WIDE

from weft.graph.winograd_plans import Layer, Plan, good_plans
from weft.targets.target import Target


def best(layer: Layer, target: Target, others: int = 0) -> Plan | None:
    return next(iter(good_plans(layer, target, others)), None)


def layer(size: int, inputs: int, outputs: int) -> Layer:
    """A layer of 3 x 3 taps."""
    return Layer(1, size, size, inputs, outputs, 3, 9 * inputs, (1, 1), 16)


def test_weights_that_come_from_memory_count() -> None:
    large = Layer(1, 14, 14, 512, 256, 2, 128 * 9, (2, 2), 16)  # 13 MB of transformed weights for 49 tiles
    small = Layer(1, 28, 28, 256, 128, 2, 64 * 9, (2, 2), 16)
    assert best(small, WIDE) == Plan(4, (1, 7, 7))
    assert best(large, WIDE, others=40 << 20) is None


def test_patches_fit_the_second_level_cache() -> None:
    rows = {}
    for megabytes in (1, 2, 16):
        plan = best(layer(112, 64, 64), replace(WIDE, l2=megabytes << 20))
        assert plan is not None
        rows[megabytes] = plan.patch[1]
    assert 4 * 36 * rows[1] * 28 * 128 < 1 << 20
    assert rows[1] < rows[2] < rows[16]


def test_large_weights_are_read_once() -> None:
    assert best(layer(14, 256, 256), WIDE) == Plan(4, (1, 4, 4))


def test_first_layers_are_gathered() -> None:
    first = Layer(1, 112, 112, 12, 64, 4, 147, (2, 2), 16, gathered=True)
    plan = best(first, WIDE)
    assert plan is not None
    assert plan.tile == 4
    assert best(replace(first, inputs=3, outputs=16, multiplications=27, taps=3, strides=(1, 1)), WIDE) is None
