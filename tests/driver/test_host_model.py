"""Host programs written by hand, end to end: loops, branches, and memory for sizes that kernels compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.host_examples import ASKED, DEVICE, DEVICE_KERNELS, LATE, LATE_KERNELS, parsed
from tests.host_programs import interpret_host
from tests.replaying import ByHand

from weft.driver.host_model import compile_host
from weft.loop import link_programs, parse_program, print_program, verify, verify_host
from weft.runtime import Model, TensorSpec, load
from weft.support.dtypes import i64
from weft.support.errors import InputError, LoweringError, RuntimeFailure, VerifyError
from weft.targets import parse_target


@pytest.fixture(scope="module")
def late() -> ByHand:
    return ByHand(parse_program(LATE), parsed(LATE_KERNELS))


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


@pytest.mark.parametrize("target", ["cpu", "c"])
def test_outputs_that_are_asked_of_the_caller(target: str) -> None:
    """Their shapes are known only when kernels have counted; kept memory grows row by row, and keeps what is in it."""
    host = parse_program(ASKED)
    kernels = parsed({name: LATE_KERNELS[name] for name in ("count_positive", "keep_positive")})
    specs = (
        [TensorSpec("x", i64, ("n",))],
        [
            TensorSpec("pairs", i64, ("late", 2), late=True),
            TensorSpec("kept", i64, ("late",), late=True),
        ],
    )
    models = [
        Model(compile_host(host, kernels, *specs, target=parse_target(target), replay=replay), threads=1)
        for replay in (False, True)
    ]
    whole = link_programs(host, kernels)
    for x in ([5, -3, 8, 0, 2], [-1], [*range(-50, 3000)]):
        given = np.array(x, np.int64)
        found = [v for v in x if v > 0]
        wanted = [np.arange(2 * len(found)).reshape(-1, 2) * 10, found]
        ways = [m.run([given]) for m in models for _ in range(2)]
        if len(x) < 10:
            ways.append(interpret_host(whole, [given], [i64, i64]))
        for made in ways:
            for array, one in zip(made, wanted, strict=True):
                np.testing.assert_array_equal(array, one)


def test_arrays_that_are_given_for_late_outputs_are_written_to() -> None:
    kernels = parsed({name: LATE_KERNELS[name] for name in ("count_positive", "keep_positive")})
    specs = (
        [TensorSpec("x", i64, ("n",))],
        [
            TensorSpec("pairs", i64, ("late", 2), late=True),
            TensorSpec("kept", i64, ("late",), late=True),
        ],
    )
    model = Model(compile_host(parse_program(ASKED), kernels, *specs))
    kept = np.zeros(3, np.int64)
    made = model.run([np.array([5, -3, 8, 1], np.int64)], out=[None, kept])
    assert made[1] is kept
    np.testing.assert_array_equal(kept, [5, 8, 1])
    with pytest.raises(InputError, match="kept"):
        model.run([np.array([5, -3], np.int64)], out=[None, kept])


def test_checks_inside_of_branches_give_memory_back(late: ByHand) -> None:
    """Memory that was taken for late sizes is given back where a check ends the call: a later call finds it."""
    given = [np.array([64, 3], np.int64)]
    for model in (late.compiled, late.replayed):
        for _ in range(3):
            with pytest.raises(RuntimeFailure, match="the model stopped while it ran: 2 values take 6 steps"):
                model.run(given)
            np.testing.assert_array_equal(model.run([np.array([4, 9], np.int64)])[0], [0, 1])
    with pytest.raises(RuntimeFailure, match="2 values take 6 steps"):
        interpret_host(link_programs(parse_program(LATE), parsed(LATE_KERNELS)), given, [i64])


def test_the_plan_refuses_what_the_text_refuses(late: ByHand) -> None:
    for model in (late.compiled, late.replayed):
        with pytest.raises(InputError, match="input x: dimension 0 is 0, which is too small"):
            model.run([np.zeros(0, np.int64)])


def test_each_module_is_an_image(late: ByHand) -> None:
    replay = late.replayed.package.replay
    assert replay is not None
    modules = [module for module, _ in late.code.callees]
    assert modules == ["counting", "counting", "arithmetic", "arithmetic"]
    images = [image for image, _ in replay.callees]
    assert images[0] is images[1] is not images[2] is images[3]


def test_compiled_as_c() -> None:
    """The other compiler of the host's makes the same of loops, branches and late sizes."""
    model = ByHand(parse_program(LATE), parsed(LATE_KERNELS), parse_target("c"))
    for x in ([5, -3, 8, 0, 2], [-1, 0]):
        for one in (model.compiled, model.replayed):
            np.testing.assert_array_equal(one.run([np.array(x, np.int64)])[0], kept(x))


def test_a_compiled_host_program_is_saved_as_any_model(late: ByHand, tmp_path: Path) -> None:
    late.compiled.save(tmp_path / "late.weft")
    again = load(tmp_path / "late.weft", threads=1)
    np.testing.assert_array_equal(again.run([np.array([5, -3, 8], np.int64)])[0], kept([5, -3, 8]))


def test_kernels_that_are_missing_or_other_than_declared_are_refused() -> None:
    host, kernels = parse_program(LATE), parsed(LATE_KERNELS)
    with pytest.raises(InputError) as told:
        ByHand(host, {"fill": kernels["fill"]})
    assert str(told.value) == (
        "the code of count_positive is not given\n  hint: give a program for it, of the entry count_positive"
    )
    with pytest.raises(VerifyError, match="fill takes 4 arguments, not 2"):
        ByHand(host, {**kernels, "fill": kernels["keep_positive"]})
    with pytest.raises(LoweringError, match="there is in global@1 memory, which code of the host can't use"):
        ByHand(parse_program(DEVICE), parsed(DEVICE_KERNELS))
