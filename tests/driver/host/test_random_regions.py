"""Random graphs of nested regions, late sizes and state: interpreted, compiled and replayed, over several calls."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from tests.driver.host.random_regions import COLUMNS, ROOM, SLOTS, models
from tests.driver.host.ways import Array
from tests.host_programs import interpret_model, linked, new_states
from tests.support.sampling import tried

from weft.driver.build import build
from weft.driver.host_model import replay_model
from weft.driver.options import check_options
from weft.runtime import Model

CALLS = 3


def feeds(proto: onnx.ModelProto, call: int) -> dict[str, Array]:
    """Returns what a call is given, but for its states."""
    rng = np.random.default_rng(call)
    given: dict[str, Array] = {
        "x": rng.standard_normal((call + 1, COLUMNS)).astype(np.float32),
        "c": np.array(call % 2 == 0),
        "k": np.array((3, 1, 4)[call]),  # ONNX's evaluator can't stack the rows of a loop that has no iterations
        "at": np.array([[call]]),
        "at2": np.array([[(2 * call) % SLOTS]]),
    }
    names = {i.name for i in proto.graph.input}
    return {name: a for name, a in given.items() if name in names}


@tried(3, 300, models())
def test_all_forms_of_a_model_agree(drawn: tuple[onnx.ModelProto, dict[str, str]]) -> None:
    agree(*drawn)


def agree(proto: onnx.ModelProto, pairs: Mapping[str, str]) -> None:
    """Compares the forms of a model, whose states are *pairs*, with each other and with ONNX's reference evaluator."""
    capacity = {"past": ROOM} if "past" in pairs else {}
    made = build(proto, options=check_options(state=pairs, capacity=capacity, verify=True))
    program, reference = linked(made), ReferenceEvaluator(proto)
    forms = [Model(package, threads=1) for package in (made.package, replay_model(made))]
    states = [form.new_state() if pairs else None for form in forms]
    interpreted = new_states(made.package)
    names = [o.name for o in proto.graph.output]
    kept = {
        name: np.zeros((SLOTS if name == "slots" else 0 if name == "past" else 1, COLUMNS), np.float32)
        for name in pairs
    }
    for call in range(CALLS):
        given = feeds(proto, call)
        wanted = dict(zip(names, reference.run(None, {**given, **kept}), strict=True))
        found = [f.run([given[s.name] for s in f.inputs], state=s) for f, s in zip(forms, states, strict=True)]
        for a, b in zip(*found, strict=True):
            np.testing.assert_array_equal(a, b)
        for a, b in zip(found[0], interpret_model(program, made, given, interpreted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, strict=True)
        for spec, a in zip(forms[0].outputs, found[0], strict=True):
            np.testing.assert_allclose(a, wanted[spec.name], rtol=1e-3, atol=1e-4, strict=True)
        kept = {name: np.asarray(wanted[left]) for name, left in pairs.items()}
        for name, s in zip(states[0] or (), interpreted, strict=True):
            for value in (states[0][name], states[1][name], s.value):  # type: ignore[index]
                np.testing.assert_allclose(value, kept[name], rtol=1e-3, atol=1e-4, strict=True)
