"""Linking refuses what an image cannot hold, and lays out what it can."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS, call, elementwise, machine_for

from weft.codegen import Module
from weft.codegen.llvm.object_code import compile_function_module
from weft.codegen.objects import link
from weft.codegen.objects.read_elf import read_object
from weft.ir import Expr, const, index
from weft.loop import Address, Assert, Buffer, Call, Function, Program, seq
from weft.support.dtypes import f32
from weft.support.errors import ToolchainError

TARGET = TARGETS["sse4"]


def compiled(*functions: Function) -> Module:
    return compile_function_module(Program(functions), TARGET)


def polynomial(x: Expr) -> Expr:
    """A function with many constants, which go to sections of their own."""
    total = const(0.5, x.dtype)
    for k in range(6):
        total = total * x + const(1.0 / (k + 3), x.dtype)
    return total


def test_constants_follow_the_code_and_are_found() -> None:
    functions = [elementwise(f"f{lanes}", [f32], f32, lanes, 16, polynomial) for lanes in (1, 4, 16)]
    machine = machine_for(functions, TARGET)
    x, want = np.linspace(-1, 1, 16, dtype=np.float32), np.full(16, 0.5, np.float32)
    for k in range(6):
        want = want * x + np.float32(1.0 / (k + 3))
    for f in functions:
        got = np.zeros(16, np.float32)
        call(machine, f.name, x, got)
        np.testing.assert_array_equal(got, want)
    image = machine.image
    assert all(at < image.readonly for at in image.symbols.values())
    assert image.readonly % 4096 == 0
    assert np.float32(1 / 3).tobytes() in image.code[image.readonly :]


def test_an_image_without_constants_is_all_code() -> None:
    image = link([compiled(Function("f", (), seq()))])
    assert image.readonly == len(image.code)


def test_undefined_symbols_are_all_named() -> None:
    x = Buffer("x", [1], f32)
    body = seq(*[Call(n, (Address(x, (index(0),)),)) for n in ("there", "here")])
    with pytest.raises(ToolchainError) as error:
        link([compiled(Function("f", (x,), body))])
    assert str(error.value) == "undefined symbols: here, there\n  hint: link the objects that define them"


def test_two_definitions_are_refused() -> None:
    f = Function("f", (), seq())
    with pytest.raises(ToolchainError, match="the symbol f is defined twice"):
        link([compiled(f), compiled(f)])


def test_private_functions_of_two_objects_may_share_a_name() -> None:
    def caller(name: str) -> Module:
        return compiled(Function(name, (), Call("inner", ())), Function("inner", (), seq()))

    assert set(link([caller("f"), caller("g")]).symbols) == {"f", "g"}


def test_an_object_may_go_by_another_name() -> None:
    f = compiled(Function("f", (), seq()))
    g = replace(f, renamed=(("f", "g"),))
    image = link([compiled(Function("both", (), seq(Call("f", ()), Call("g", ())))), f, g])
    assert set(image.symbols) == {"both", "f", "g"}
    assert image.symbols["f"] != image.symbols["g"]
    with pytest.raises(ToolchainError, match="the symbol g is defined twice"):
        link([g, g])


def test_messages_are_merged_and_must_not_collide() -> None:
    f = Function("f", (), Assert(index(0) < index(-1), "never", ()))
    code = compiled(f)
    (number, text), *_ = code.messages
    assert link([code]).messages == {number: text}
    with pytest.raises(ToolchainError, match="two assertion messages share a number: 'other' and 'never'"):
        link([code, Module("elf", compiled(Function("g", (), seq())).data, ((number, "other"),))])


@pytest.mark.parametrize("data", [b"", b"\x7fELF\x01\x01" + b"\0" * 64, b"not an object" * 10])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(ToolchainError, match="the object is not little-endian ELF64"):
        read_object(data)


def for_machine(number: int) -> Module:
    """A module whose ELF header names another machine."""
    elf = bytearray(compiled(Function("f", (), seq())).data)
    elf[18:20] = number.to_bytes(2, "little")
    return Module("elf", bytes(elf))


def test_unknown_machines_are_refused() -> None:
    with pytest.raises(ToolchainError) as error:
        link([for_machine(3)])
    assert str(error.value) == (
        "the object is of type 1 for machine 3, not relocatable for x86_64, aarch64, riscv64\n"
        "  hint: link objects that Weft has compiled"
    )


def test_machines_without_relocations_are_refused() -> None:
    with pytest.raises(ToolchainError) as error:
        link([for_machine(243)])
    assert str(error.value) == (
        "objects for riscv64 can't be linked yet: only those for x86_64 can\n  hint: compile for another target"
    )


def test_objects_for_two_machines_are_refused() -> None:
    with pytest.raises(ToolchainError) as error:
        link([for_machine(243), compiled(Function("g", (), seq()))])
    assert str(error.value) == "objects for riscv64 and x86_64 can't be linked\n  hint: compile them for one target"


def test_writable_data_is_refused() -> None:
    elf = bytearray(compiled(Function("f", (), seq())).data)
    parsed = read_object(bytes(elf))
    text = next(i for i, s in enumerate(parsed.sections) if s.name == ".text")
    table = int.from_bytes(elf[40:48], "little")
    elf[table + 64 * text + 8] |= 1
    with pytest.raises(ToolchainError, match=r"the object has writable data in \.text"):
        link([Module("elf", bytes(elf))])
