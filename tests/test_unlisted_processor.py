"""On a processor that is in no table, models compile, choose sensible schedules, and compute what they should.

`WEFT_TEST_UNLISTED_PROCESSOR=1 make test` runs all tests as on such a machine.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnxruntime
import pytest
from tests.models import BUILDERS, random_inputs
from tests.support.kernels import inner_loop, spills
from tests.support.processors import FIXED, every_core, unlisted_processor

import weft
from weft.codegen.llvm.object_code import assembly
from weft.lower import lower
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.support.dtypes import f32
from weft.targets import LEVELS, cpu, host
from weft.te import placeholder, to_program


@pytest.fixture(autouse=True)
def unlisted() -> Iterator[None]:
    with unlisted_processor():
        yield


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", BUILDERS)
def test_models_compute_what_onnx_runtime_does(name: str) -> None:
    proto = BUILDERS[name]()
    inputs = random_inputs(proto, seed=5)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    model = weft.compile(proto)
    ours = model.run([inputs[s.name] for s in model.inputs])
    for a, b in zip(ours, session.run(None, inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-4 * max(np.abs(b).max(), 1e-30))


LAYERS = {
    "matmul": ((128, 256), (256, 192)),
    "conv2d": ((1, 64, 28, 28), (64, 64, 3, 3)),
    "matmul of one row": ((1, 1024), (1024, 512)),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("layer", LAYERS)
def test_the_rules_give_layers_tiles_that_stay_in_registers(layer: str, level: str) -> None:
    a, b = (placeholder(shape, f32, name) for shape, name in zip(LAYERS[layer], "ab", strict=True))
    target = cpu(level)
    scheduled = schedule_program(to_program([a, b], OPERATORS[layer.split()[0]]([a, b], {})), target)
    product = "vfmadd" if target.isa.fma else "mulps"
    body = inner_loop(assembly(lower(scheduled.program, target), target), product)
    assert sum(product in x for x in body) >= 8, "products that need not wait for one another"
    assert spills("\n".join(body)) == []


def test_this_machine_is_timed_like_another_with_facts_of_its_own() -> None:
    assert host().core.tune in every_core()
    assert host().caches.l3_speed == FIXED.l3_speed
