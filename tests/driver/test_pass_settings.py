"""Passes are skipped, and their options set, by name; a pass's function declares its options, and nothing else does."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final

import numpy as np
import pytest
from tests.models import tiny_resnet

import weft
from weft.driver.build import Compilation, build
from weft.driver.evaluate import NativeEvaluator
from weft.driver.measure.random_inputs import random_inputs
from weft.driver.options import check_options
from weft.frontends import to_graph
from weft.graph import GRAPH_PASSES, GraphReport, optimize
from weft.loop import Program, parse_program
from weft.lower import PASSES, ProgramReport, run_passes
from weft.runtime.model import Model
from weft.support.errors import InputError
from weft.support.knobs import Switches
from weft.support.pass_options import PassOption, options_of, parse_setting
from weft.support.passes import Pass, alone
from weft.targets import cpu

EVERY: Final[list[Pass[Any, Any]]] = [*GRAPH_PASSES, *PASSES]


def made(*passes: str) -> Compilation:
    return build(tiny_resnet(), options=check_options(passes=passes))


def outputs(made: Compilation) -> np.ndarray[Any, Any]:
    model = Model(made.package)
    return np.asarray(model(**random_inputs(model.inputs)))


@cache
def expected() -> np.ndarray[Any, Any]:
    return outputs(made())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [p.name for p in EVERY if p.may_be_skipped])
def test_a_pass_that_may_be_skipped(name: str) -> None:
    np.testing.assert_allclose(outputs(made(f"{name}=off")), expected(), rtol=1e-4, atol=1e-5)


def test_skipped_passes_are_reported_as_skipped() -> None:
    graph: list[GraphReport] = []
    target = cpu("avx2")
    off = Switches(passes=("pack_matrices=off", "unswitch_loops=off"))
    optimize(to_graph(tiny_resnet()), target, NativeEvaluator(target), off, trace=graph.append)
    assert [r.name for r in graph if r.status == "skipped"] == ["pack_matrices"]
    program: list[ProgramReport] = []
    run_passes(PASSES, PROGRAM, target, off, trace=program.append)
    assert [r.line().split()[-1] for r in program if r.name == "unswitch_loops"] == ["(skipped)"]
    assert [r.name for r in program if r.status == "skipped"] == ["unswitch_loops"]


PROGRAM: Final = parse_program("""
def main(A: f32[16], C: f32[16], n: i64):
    for i in range(0, 16):
        if n < 4:
            C[i] = A[i] + 1.0
        if 4 <= n:
            C[i] = A[i] + 2.0
""")


def test_an_option_reaches_its_pass() -> None:
    def unswitched(*passes: str) -> Program:
        only = [p for p in PASSES if p.name == "unswitch_loops"]
        return run_passes(only, PROGRAM, cpu("avx2"), Switches(passes=passes))

    assert unswitched() is not PROGRAM
    assert unswitched("unswitch_loops.depth=0") is PROGRAM


def test_settings_are_in_the_key_of_a_kernel() -> None:
    plain, asked = made(), made("unswitch_loops.depth=0")
    for key in plain.requests.keys() & asked.requests.keys():
        assert plain.requests[key].key(plain.target) != asked.requests[key].key(asked.target)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("unswitch=off", "there is no pass unswitch"),
        ("vectorize=off", "the pass vectorize can't be skipped"),
        ("unswitch_loops.most=1", "the pass unswitch_loops has no option most"),
    ],
)
def test_wrong_settings_list_those_that_there_are(setting: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        made(setting)
    text = str(raised.value)
    assert text.startswith(f"{message}\n  hint: the passes and their options are\n    ")
    assert "unswitch_loops=off\n" in text
    assert "unswitch_loops.depth=2: conditions taken out of one loop, each of which doubles it" in text
    assert "vectorize" not in text.partition("hint")[2]


@pytest.mark.parametrize("setting", ["unswitch_loops", "unswitch_loops=on", "=off", "a.=1", "a.b=", ".b=1", ""])
def test_what_is_no_setting(setting: str) -> None:
    with pytest.raises(InputError, match="is no setting of a pass"):
        weft.compile(tiny_resnet(), passes=[setting])


def test_values_that_are_none() -> None:
    with pytest.raises(InputError, match=r"'unswitch_loops.depth=two' sets no int"):
        made("unswitch_loops.depth=two")
    with pytest.raises(InputError, match=r"passes has both 'unswitch_loops.depth=1' and 'unswitch_loops.depth=2'"):
        made("unswitch_loops.depth=1", "unswitch_loops.depth=2")


def reverse(text: str, *, twice: Annotated[bool, "turn it again"] = False, other: int = 3) -> str:
    return text if twice else text[::-1]


def test_a_declaration_is_the_signature() -> None:
    found = options_of(reverse)
    assert found == {"twice": PassOption("twice", bool, "turn it again", default=False)}
    assert str(found["twice"]) == "twice=false: turn it again"
    declared: Pass[str, object] = Pass("reverse", alone(reverse))
    assert declared.options == found
    assert declared.call("ab", None, Switches()) == "ba"
    assert declared.call("ab", None, Switches(passes=("reverse.twice=true", "other.twice=3"))) == "ab"
    assert parse_setting("reverse.twice=true").option == "twice"


def test_all_passes_of_the_graph_say_what_their_options_mean() -> None:
    for p in EVERY:
        assert all(o.meaning and o.parse(str(o.default).lower()) == o.default for o in p.options.values()), p.name
