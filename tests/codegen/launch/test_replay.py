"""Replayed host programs against their compiled form, and against the interpreter: the same bits, the same errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.host_examples import LATE, LATE_KERNELS, parsed
from tests.host_programs import interpret_host
from tests.models import BUILDERS, lstm_step, mlp, random_inputs, tiny_bert_layer, tiny_gpt2_decode
from tests.replaying import ByHand, launch_code, replayed

import weft
from weft.loop import link_programs, parse_program, print_program, verify, verify_host
from weft.native import _rt
from weft.runtime import Model
from weft.support.dtypes import i64
from weft.support.errors import RuntimeFailure

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits"


def both(proto: onnx.ModelProto | Path) -> tuple[_rt.Model, _rt.Model]:
    """Returns a model's compiled form and its replayed one, which agree as to how many threads a call has."""
    made = weft.build(proto)
    return Model(made.package, threads=1)._native, replayed(made)


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


def failure(model: _rt.Model, given: list[np.ndarray]) -> tuple[object, ...]:
    """Returns the arguments of the error that a call ends with."""
    with pytest.raises(_rt.Failed) as told:
        model.run(given)
    return told.value.args


def test_the_plan_refuses_the_same_shapes_with_the_same_details() -> None:
    compiled, launched = both(mlp())
    for shape in ((3, 23), (2, 0)):
        given = [np.zeros(shape, np.float32)]
        found = failure(launched, given)
        assert found == failure(compiled, given)
        assert found[0] == _rt.FAILED_ASSERT


def test_a_guard_stops_the_run_with_the_same_number_and_details() -> None:
    proto = tiny_gpt2_decode()
    compiled, launched = both(proto)
    given = random_inputs(proto)
    given["ids"][...] = 99
    found = failure(launched, list(given.values()))
    assert found == failure(compiled, list(given.values()))
    given["ids"][...] = 1  # what was noted of the failed call is cleared
    launched.run(list(given.values()))


def test_calls_of_several_threads() -> None:
    made = weft.build(tiny_bert_layer())
    given = list(random_inputs(tiny_bert_layer()).values())
    np.testing.assert_array_equal(replayed(made, threads=2).run(given)[0], Model(made.package)._native.run(given)[0])


def test_outputs_that_the_caller_gives() -> None:
    compiled, launched = both(lstm_step())
    given = list(random_inputs(lstm_step()).values())
    wanted = compiled.run(given)
    made = launched.run_into(given, [np.zeros_like(w) for w in wanted], None)
    for got, value in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(got, value)


def test_other_callees_or_tensors_are_refused() -> None:
    made = weft.build(mlp())
    package = made.package
    image = _rt.Image(package.image)
    from_bytes = replayed(made)
    assert from_bytes.run([np.zeros((1, 24), np.float32)])[0].shape == (1, 10)
    code = launch_code(made).data
    for callees, ins, outs in (([(image, 0)], 1, 1), ([(image, 0)] * 3, 2, 1), ([(image, 0)] * 3, 1, 0)):
        with pytest.raises(ValueError, match="the host program has other inputs, outputs or callees"):
            _rt.Model(code, callees, package.constants, [(11, 2)] * ins, [(11, 2)] * outs)


# ---- loops, branches, and sizes that kernels compute ----


@pytest.fixture(scope="module")
def late() -> ByHand:
    return ByHand(parse_program(LATE), parsed(LATE_KERNELS), [(i64, 1)], [(i64, 1)])


def kept(x: list[int]) -> list[int]:
    """Returns what the example computes, in Python."""
    found, steps = [v for v in x if v > 0], 0
    if not found:
        return [-2, *[-1] * (len(x) - 1)]
    while True:
        found, steps = [v // 2 for v in found], steps + 1
        if all(v <= 1 for v in found):
            break
    return [*found, *[steps, *[-1] * len(x)][: len(x) - len(found)]]


@pytest.mark.parametrize(
    "x", [[5, -3, 8, 0, 2], [-1], [1], [31] * 40, [-5, -6, -7], [0, 0, 9], list(range(-500, 32)), [7] * 100_000]
)
def test_late_sizes_loops_and_branches(x: list[int], late: ByHand) -> None:
    """Written by hand, verified, and run in three ways: by the interpreter, compiled, and replayed."""
    given = np.array(x, np.int64)
    wanted = kept(x)
    for model in (late.compiled, late.replayed):
        for _ in range(2):
            np.testing.assert_array_equal(model.run([given])[0], wanted)
    if len(x) < 1000:
        host = parse_program(LATE)
        verify_host(host)
        whole = parse_program(print_program(link_programs(host, parsed(LATE_KERNELS))))
        verify(whole, flat=True)
        np.testing.assert_array_equal(interpret_host(whole, [given], [i64])[0], wanted)


def test_checks_inside_of_branches_give_memory_back(late: ByHand) -> None:
    """Memory that was taken for late sizes is given back where a check ends the call: a later call finds it."""
    given = [np.array([64, 3], np.int64)]
    found = failure(late.replayed, given)
    assert found == failure(late.compiled, given)
    assert found[3] == (2, 6, 0, 0)
    messages = dict(late.code.messages)
    assert messages[found[2]] == "{0} values take {1} steps"  # type: ignore[index]
    with pytest.raises(RuntimeFailure, match="2 values take 6 steps"):
        interpret_host(link_programs(parse_program(LATE), parsed(LATE_KERNELS)), given, [i64])
    for _ in range(3):
        np.testing.assert_array_equal(late.replayed.run([np.array([4, 9], np.int64)])[0], [0, 1])
