"""The host program of a model: printed, read back, verified, interpreted as a whole, and compiled as its entry alone was."""

from __future__ import annotations

import numpy as np
import pytest
from tests.host_programs import interpret_model, linked
from tests.models import BUILDERS, mlp, random_inputs, tiny_gpt2_decode

import weft
from weft.codegen import backend_of
from weft.codegen.interp import ExecutionError, run
from weft.driver.host.entry import entry_program, place_constants
from weft.loop import (
    Call,
    Program,
    definitions,
    external_module,
    parse_program,
    print_program,
    statements,
    verify,
    verify_host,
)
from weft.runtime import Model


@pytest.mark.parametrize("name", BUILDERS)
def test_the_host_program_alone_with_its_kernels_is_the_model(name: str) -> None:
    """The text is all that there is: what it says is run by the interpreter, and is what the compiled model computes."""
    proto = BUILDERS[name]()
    made = weft.build(proto)
    text = print_program(made.host)
    host = parse_program(text)
    verify_host(host)
    assert print_program(host) == text
    whole = parse_program(print_program(linked(made, host)))
    verify(whole, flat=True)
    inputs = random_inputs(proto)
    wanted = Model(made.package)(**inputs)
    values = wanted if isinstance(wanted, tuple) else (wanted,)
    for got, value in zip(interpret_model(whole, made, inputs), values, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-5)


def test_declarations_change_no_code() -> None:
    for proto in (mlp(), tiny_gpt2_decode()):
        made = weft.build(proto)
        names = {key: k.name for key, k in made.kernels.items()}
        entry = entry_program(made.fused, made.plan, place_constants(made.fused), names)
        for target in (made.target, weft.build(mlp(), target="c").target):
            write = backend_of(target).write
            assert write(definitions(made.host), target).text == write(entry, target).text


def test_every_kernel_is_declared_once_in_its_module() -> None:
    made = weft.build(tiny_gpt2_decode())
    called = {s.callee for s in statements(made.host["main"].body) if isinstance(s, Call)}
    declared = [f for f in made.host.functions if external_module(f) is not None]
    assert sorted(f.name for f in declared) == sorted(called)
    assert {external_module(f) for f in declared} == {made.target.name}


def test_the_interpreter_finds_a_view_that_leaves_the_arena() -> None:
    made = weft.build(mlp())
    text = print_program(linked(made))
    outside = text.replace("view(arena, 128 * batch,", "view(arena, 129 * batch,")
    assert outside != text
    with pytest.raises(ExecutionError, match="reaches outside of memory of 768 bytes"):
        interpret_model(parse_program(outside), made, random_inputs(mlp()))


def test_what_is_declared_only_is_not_run() -> None:
    made = weft.build(mlp())
    name = made.host.functions[-1].name
    with pytest.raises(weft.InputError, match=f"{name} is declared only: its code is in the module {made.target.name}"):
        run(Program((made.host[name],)), [])
    with pytest.raises(ExecutionError, match="there is no function or intrinsic"):
        interpret_model(made.host, made, random_inputs(mlp()))
