"""The benchmark's eight networks at full size: devices give the processor's results, and CUDA's kernels are within its limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.driver.device.test_models_on_device import check_every_call_is_a_launch, each_target
from tests.support.cuda_resources import check_resources
from tests.support.devices import needs_nvrtc
from tests.support.real_networks import NAMES, RealNetwork

import weft
from weft.driver.build import build
from weft.targets.cuda_machines import LISTED

TOLERANCE = 2e-5
"""Of the largest value of a result."""


@pytest.mark.slow
@each_target
@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_processor(name: str, target: str, real_network: Callable[[str], RealNetwork]) -> None:
    network = real_network(name)
    expected = weft.compile(network.path).run(list(network.inputs.values()))
    made = build(network.model, target, cache=None)
    check_every_call_is_a_launch(made)
    for of_device, of_processor in zip(
        weft.Model(made.package).run(list(network.inputs.values())), expected, strict=True
    ):
        np.testing.assert_allclose(of_device, of_processor, rtol=0, atol=TOLERANCE * np.abs(of_processor).max())


@pytest.mark.slow
@needs_nvrtc
@pytest.mark.parametrize("arch", LISTED)
@pytest.mark.parametrize("precision", ["model", "bf16"])
@pytest.mark.parametrize("name", NAMES)
def test_registers_and_shared_memory_of_cuda(
    name: str,
    precision: str,
    arch: str,
    real_network: Callable[[str], RealNetwork],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_resources(real_network(name).model, arch, monkeypatch, precision)
