"""Models whose kernels run on a device compute what they do on the processor, and nothing of them runs there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from tests.codegen.c.networks import NETWORKS, OTHERS
from tests.support.devices import needs_opencl

import weft
from weft.driver.build import build
from weft.loop import Kernel, external_module, find_note, verify_host
from weft.support.errors import ArtifactError, InputError

pytestmark = needs_opencl
MODELS = {**NETWORKS, **OTHERS}


def inputs_of(model: weft.Model, symbolic: int = 3) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    made = []
    for spec in model.inputs:
        shape = [d if isinstance(d, int) else symbolic for d in spec.shape]
        values = rng.standard_normal(shape) if spec.dtype.is_float else rng.integers(0, 3, shape)
        made.append(values.astype(spec.dtype.numpy))
    return made


@pytest.mark.sampled(3)
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_results_are_those_of_the_processor(make: Callable[[], onnx.ModelProto]) -> None:
    model = make()
    here, there = weft.compile(model), weft.compile(model, target="opencl")
    given = inputs_of(here)
    for _ in range(2):  # the second call has memory of the first
        for expected, made in zip(here.run(given), there.run(given), strict=True):
            np.testing.assert_allclose(made, expected, rtol=2e-5, atol=2e-5)


def test_every_call_is_a_launch() -> None:
    made = build(NETWORKS["mlp"](), "opencl")
    verify_host(made.host)
    declared = [f for f in made.host.functions if external_module(f) is not None]
    assert declared
    assert all(find_note(f.notes, Kernel) is not None for f in declared)
    assert made.package.replay is not None
    assert {image for image, _ in made.package.replay.callees} == {None}


def test_several_sizes_of_one_model() -> None:
    model = NETWORKS["digits"]()
    here, there = weft.compile(model), weft.compile(model, target="opencl")
    for n in (5, 1, 8, 0):
        given = inputs_of(here, n)
        np.testing.assert_allclose(there.run(given)[0], here.run(given)[0], rtol=2e-5, atol=2e-5)


def test_what_devices_do_not_have_yet() -> None:
    with pytest.raises(InputError, match="models for opencl have no states yet"):
        weft.compile(OTHERS["lstm"](), target="opencl", state={"h": "h1"})


def test_saving_says_what_to_do() -> None:
    with pytest.raises(ArtifactError, match="models for opencl can't be saved yet"):
        weft.compile(NETWORKS["mlp"](), target="opencl").save("model.weft")
