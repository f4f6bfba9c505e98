"""Replayed host programs against their compiled form, and against the interpreter: the same bits, the same errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.models import BUILDERS, lstm_step, mlp, random_inputs, tiny_bert_layer, tiny_gpt2_decode
from tests.replaying import launch_code

import weft
from weft.driver.host_model import replay_model
from weft.native import _rt
from weft.runtime import Model
from weft.runtime.lazy_constants import in_memory
from weft.support.errors import ArtifactError

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits"


def both(proto: onnx.ModelProto | Path) -> tuple[Model, Model]:
    """Returns a model's compiled form and its replayed one."""
    made = weft.build(proto)
    return Model(made.package, threads=1), Model(replay_model(made), threads=1)


@pytest.mark.parametrize("name", BUILDERS)
def test_every_model_computes_the_same_bits(name: str) -> None:
    proto = BUILDERS[name]()
    compiled, launched = both(proto)
    for seed in (0, 1):
        given = list(random_inputs(proto, seed=seed).values())
        for got, wanted in zip(launched.run(given), compiled.run(given), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_digits_of_any_batch() -> None:
    compiled, launched = both(DIGITS / "digits.onnx")
    images = np.load(DIGITS / "heldout.npz")["images"]
    for batch in (0, 1, 7, 64):
        got, wanted = (m.run([np.ascontiguousarray(images[:batch])]) for m in (launched, compiled))
        np.testing.assert_array_equal(got[0], wanted[0])


def failure(model: Model, given: list[np.ndarray]) -> tuple[type, str]:
    """Returns the error that a call ends with: its class, and its text."""
    with pytest.raises(weft.WeftError) as told:
        model.run(given)
    return type(told.value), str(told.value)


def test_the_plan_refuses_the_same_shapes_with_the_same_details() -> None:
    compiled, launched = both(mlp())
    for shape in ((3, 23), (2, 0)):
        given = [np.zeros(shape, np.float32)]
        assert failure(launched, given) == failure(compiled, given)


def test_a_guard_stops_the_run_with_the_same_number_and_details() -> None:
    proto = tiny_gpt2_decode()
    compiled, launched = both(proto)
    given = random_inputs(proto)
    given["ids"][...] = 99
    found = failure(launched, list(given.values()))
    assert found == failure(compiled, list(given.values()))
    assert found[0] is weft.RuntimeFailure
    assert "index 99 is outside of -40 to 39" in found[1]
    given["ids"][...] = 1  # what was noted of the failed call is cleared
    launched.run(list(given.values()))


def test_calls_of_several_threads() -> None:
    made = weft.build(tiny_bert_layer())
    given = list(random_inputs(tiny_bert_layer()).values())
    wanted = Model(made.package, threads=1).run(given)
    np.testing.assert_array_equal(Model(replay_model(made), threads=2).run(given)[0], wanted[0])


def test_outputs_that_the_caller_gives() -> None:
    compiled, launched = both(lstm_step())
    given = list(random_inputs(lstm_step()).values())
    wanted = compiled.run(given)
    made = launched.run(given, [np.zeros_like(w) for w in wanted])
    for got, value in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(got, value)


def test_other_callees_or_tensors_are_refused() -> None:
    made = weft.build(mlp())
    package = made.package
    image = _rt.Image(package.image)
    code = launch_code(made).data
    for callees, ins, outs in (([(image, 0)], 1, 1), ([(image, 0)] * 3, 2, 1), ([(image, 0)] * 3, 1, 0)):
        with pytest.raises(ValueError, match="the host program has other inputs, outputs or callees"):
            _rt.Model(code, callees, in_memory(package.constants), [(11, 2)] * ins, [(11, 2)] * outs)


def test_a_replayed_model_is_not_saved(tmp_path: Path) -> None:
    _, launched = both(mlp())
    with pytest.raises(ArtifactError) as told:
        launched.save(tmp_path / "mlp.weft")
    assert str(told.value) == ("a model whose host program is replayed can't be saved\n  hint: save its compiled form")
    assert list(tmp_path.iterdir()) == []
