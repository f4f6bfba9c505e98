"""Groups with a target of their own, in one model: linked to one image, and as bytes with an image for each target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from tests.driver.host.ways import F32, model

import weft
from weft.driver.build import Compilation, build
from weft.driver.host_model import replay_model
from weft.graph import Group
from weft.loop import external_module
from weft.runtime import Model
from weft.support.errors import InputError
from weft.targets import Target, can_run, cpu, needed_flags, parse_target

WIDE, NARROW = cpu("avx2"), cpu("sse4")

pytestmark = pytest.mark.skipif(not can_run(WIDE), reason="this processor has no AVX2")


def two_kernels() -> onnx.ModelProto:
    """Returns a product and a softmax of its rows."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Softmax", ["a"], ["y"])]
    w = np.random.default_rng(0).standard_normal((24, 33)).astype(np.float32)
    return model(nodes, [("x", F32, [7, 24])], [("y", F32, [7, 33])], {"w": w})


def softmax_is_narrow(group: Group) -> Target | None:
    return NARROW if "softmax" in group.name else None


def mixed(target: Target = WIDE) -> Compilation:
    return build(two_kernels(), target, target_of=softmax_is_narrow)


def test_kernels_are_in_the_modules_of_their_targets() -> None:
    made = mixed()
    modules = {f.name: m for f in made.host.functions if (m := external_module(f)) is not None}
    assert modules == {"matmul_packed": WIDE.name, "softmax": NARROW.name}
    requests = [(k, made.requests[key].target or WIDE) for key, k in made.kernels.items()]
    registers = {k.name: "ymm" in k.assembly(target) for k, target in requests}
    assert registers == {"matmul_packed": True, "softmax": False}


def test_all_forms_compute_the_same(tmp_path: Path) -> None:
    made = mixed()
    x = np.random.default_rng(1).standard_normal((7, 24)).astype(np.float32)
    (one,) = Model(made.package).run([x])
    replayed = replay_model(made)
    assert replayed.replay is not None
    assert len({image for image, _ in replayed.replay.callees}) == 2
    np.testing.assert_array_equal(Model(replayed).run([x])[0], one)
    Model(made.package).save(tmp_path / "mixed.weft")
    np.testing.assert_array_equal(weft.load(tmp_path / "mixed.weft")(x), one)
    np.testing.assert_allclose(one, Model(build(two_kernels(), WIDE).package).run([x])[0], rtol=1e-5)


def test_a_model_needs_the_features_of_all_its_modules() -> None:
    made = build(two_kernels(), NARROW, target_of=lambda g: WIDE if "matmul" in g.name else None)
    assert set(made.package.features) == {*needed_flags(NARROW), *needed_flags(WIDE)}


def test_another_machine_is_refused() -> None:
    with pytest.raises(InputError, match=r"the kernel softmax is to be for c, in a model for cpu -mattr=avx2"):
        build(two_kernels(), WIDE, target_of=lambda g: parse_target("c") if g.name == "softmax" else None)
