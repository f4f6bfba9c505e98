"""Patches of rounded factors in fragments: right thread by thread, without races."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.graph.oracle import evaluate_tensors
from tests.lower.expanding import expand_instructions
from tests.lower.threaded import run_case
from tests.schedule.programs import Case, OfBits, case
from tests.schedule.rules.grid.test_fragment_tiles import taking

from weft.cost import FragmentTile
from weft.lower import lower
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.support.dtypes import DType, bf16, f32, u32
from weft.targets.cuda_machines import cuda
from weft.te import placeholder

CASES: dict[str, tuple[str, tuple[int, ...], tuple[int, int], dict[str, Any], FragmentTile]] = {
    "fragments": ("sm_80", (2, 16, 4, 4), (16, 144), {"pads": (1, 1, 1, 1)}, FragmentTile(1, 1, 2, 1)),
    "images beside each other": (
        "sm_80",
        (2, 16, 4, 4),
        (16, 144),
        {"pads": (1, 1, 1, 1), "merged": True},
        FragmentTile(1, 1, 4, 1),
    ),
    "groups of warps": ("sm_90", (1, 64, 8, 8), (64, 64), {"kernel": (1, 1)}, FragmentTile(4, 1, 8, 4, 1, 4, 2)),
    "parts of the terms": (
        "sm_80",
        (2, 16, 4, 4),
        (16, 144),
        {"pads": (1, 1, 1, 1), "merged": True},
        FragmentTile(1, 1, 4, 1, parts=3),
    ),
    "taps filled up": (
        "sm_80",
        (1, 3, 4, 4),
        (16, 48),
        {"pads": (1, 1, 1, 1), "channels": 4},
        FragmentTile(1, 1, 2, 1),
    ),
    "places filled up": (
        "sm_80",
        (1, 16, 3, 3),
        (16, 144),
        {"pads": (1, 1, 1, 1)},
        FragmentTile(1, 1, 2, 1, parts=9, filled=True),
    ),
    "places filled up, by groups of warps": (
        "sm_90",
        (1, 128, 5, 5),
        (64, 128),
        {"kernel": (1, 1)},
        FragmentTile(4, 1, 8, 4, 1, 4, 2, parts=2, filled=True),
    ),
}


TF32: dict[str, tuple[str, tuple[int, ...], tuple[int, int], dict[str, Any], FragmentTile]] = {
    **{f"{name}, tf32": CASES[name] for name in ("fragments", "taps filled up", "places filled up")},
    "groups of warps, tf32": ("sm_90", (1, 32, 8, 8), (64, 32), {"kernel": (1, 1)}, FragmentTile(4, 1, 8, 4, 1, 4, 2)),
    "places filled up, by groups of warps, tf32": (
        "sm_90",
        (1, 64, 5, 5),
        (64, 64),
        {"kernel": (1, 1)},
        FragmentTile(4, 1, 8, 4, 1, 4, 2, parts=2, filled=True),
    ),
}
"""Steps of as many products have half as many terms."""


def convolution(image: Sequence[int], weight: Sequence[int], attributes: dict[str, Any], factors: DType) -> Case:
    """An image in float32 and a weight [channels, terms] in bf16, or of the bits of tf32."""
    given = [placeholder(image, f32, "x"), placeholder(weight, factors, "w")]
    outputs = OPERATORS["conv2d_implicit"](given, {"kernel": (3, 3), "trans": True, **attributes})
    made = case(
        given, outputs, lambda *v: evaluate_tensors(outputs, dict(zip([t.op for t in given], v, strict=True)), {})
    )
    return made if factors is bf16 else OfBits(made.program, made.oracle, made.inputs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*CASES, *TF32])
def test_thread_by_thread(name: str) -> None:
    arch, image, weight, attributes, tile = {**CASES, **TF32}[name]
    target, made = cuda(arch), convolution(image, weight, attributes, u32 if name in TF32 else bf16)
    flat = lower(schedule_program(made.program, target, taking(tile)).program, target, verify=True)
    kind = "tf32" if name in TF32 else "bf16"
    assert (f"cuda.wgmma_{kind}" if tile.copies > 1 else f"warp.mma_{kind}") in str(flat)
    assert "patches[" not in str(flat)
    assert len([f for f in flat.functions if "kernel" in f.name]) == (1 if tile.parts == 1 else 2)
    run_case(made, expand_instructions(flat), target)
