"""Tensor instructions: the declaration is one, and the implementation computes what the semantics say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft.codegen.interp import run
from weft.codegen.llvm.ir_module import llvm_text
from weft.codegen.llvm.object_code import assembly
from weft.driver.function import NativeFunction
from weft.ir import Const
from weft.loop import Buffer, Function, Program, parse_program
from weft.lower import lower
from weft.support.errors import LoweringError, VerifyError
from weft.targets import TILE, Target, can_run, cpu, host
from weft.targets.instructions import TILE_OPERATIONS, TensorIntrinsic
from weft.targets.instructions.gemm_unit import GEMM_UNIT_TARGET
from weft.targets.instructions.known_instructions import INTRINSICS, dot_products, intrinsics_of
from weft.targets.scopes import CPU_SCOPES

ARM = cpu("sse4").having(
    name="arm",
    triple="aarch64-unknown-linux-gnu",
    cpu="generic",
    tune="generic",
    features=("+dotprod", "+neon"),
    vector_bits=128,
)

Arrays = list[Any]

SOME_ROWS = (3, 16)
"""Heights of matrix tiles that are tested: the declarations of all are made alike."""

TESTED = sorted(n for n in INTRINSICS if n not in TILE_OPERATIONS or TILE_OPERATIONS[n].rows in SOME_ROWS)


def arguments(f: Function, seed: int, scale: float = 1.0) -> Arrays:
    """Random operands, dense; scalars are the distances of their rows."""
    made = np.random.default_rng(seed)
    values: Arrays = []
    for p in f.params:
        if not isinstance(p, Buffer):
            values.append(next(shape_of(b)[-1] for b in f.params if isinstance(b, Buffer) and p in (b.strides or ())))
        elif p.dtype.is_int:
            low, high = (-128, 128) if p.dtype.kind == "int" else (0, 256)
            values.append(made.integers(low, high, shape_of(p)).astype(p.dtype.numpy))
        else:
            values.append((made.standard_normal(shape_of(p)) * scale).astype(p.dtype.numpy))
    return values


def shape_of(p: Buffer) -> list[int]:
    return [int(str(s)) for s in p.shape]


def interpreted(f: Function, values: Arrays) -> Arrays:
    given = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
    run(Program((f,)), given)
    return given


@pytest.mark.parametrize("name", TESTED)
@pytest.mark.parametrize("seed", range(5))
def test_the_implementation_does_what_the_semantics_say(name: str, seed: int) -> None:
    i = INTRINSICS[name]
    values = arguments(i.semantics, seed)
    wanted, got = interpreted(i.semantics, values), interpreted(i.implementation, values)
    for w, g in zip(wanted, got, strict=True):
        rounded = isinstance(w, np.ndarray) and w.dtype == np.float32  # the sums of bf16 are in another order
        np.testing.assert_allclose(g, w, rtol=1e-6 if rounded else 0, atol=1e-6 if rounded else 0)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "name", [n for n in TESTED if n not in TILE_OPERATIONS and INTRINSICS[n] in intrinsics_of(host())]
)
@pytest.mark.parametrize("level", [None, "avx2"])
def test_machine_code_does_what_the_interpreter_does(name: str, level: str | None) -> None:
    i, target = INTRINSICS[name], cpu(level)
    if not i.is_on(target) or not can_run(target):
        pytest.skip(f"{target.name} has no {name}")
    function = NativeFunction(Program((i.implementation,)), target)
    for seed in range(20):
        values = arguments(i.implementation, seed)
        wanted = interpreted(i.implementation, values)
        function(*[v.reshape(-1) if isinstance(v, np.ndarray) else v for v in values])
        for w, g in zip(wanted, values, strict=True):
            np.testing.assert_array_equal(g, w)


def test_each_declares_its_effects() -> None:
    for i in INTRINSICS.values():
        assert len(i.writes) == 1
        named = {r.buffer.name for r in (*i.reads, *i.writes)}
        assert named == {p.name for p in i.semantics.params if isinstance(p, Buffer)}


def test_a_call_of_an_instruction_runs_its_semantics() -> None:
    i = INTRINSICS["gemm_unit.multiply"]
    values = arguments(i.semantics, 0)
    got = interpreted(i.implementation, values)
    acc, inp, wgt = (v.astype(np.int64) for v in values[:3])
    np.testing.assert_array_equal(got[0], acc + inp @ wgt.T)
    assert i.model.name == "gemm_unit.multiply"


def test_targets_have_what_their_features_say() -> None:
    def names(t: Target) -> set[str]:
        return {i.name for i in intrinsics_of(t) if not i.name.startswith("interleave")}

    features = ("+avx2", "+avx512bf16", "+avx512bw", "+avx512vl", "+avx512vnni", "+avxvnni")
    everything = cpu("avx512").having(features=features)
    assert names(everything) == {n for n in INTRINSICS if n.startswith("x86.dot")}
    tiles = everything.having(features=("+amx-bf16", "+amx-int8", "+amx-tile"), scopes=(*CPU_SCOPES, TILE))
    assert names(tiles) == set(TILE_OPERATIONS)
    assert names(tiles.having(scopes=CPU_SCOPES)) == set()
    assert names(cpu("avx2").having(features=("+avx2",))) == {
        "x86.dot_u8i8_8x4",
        "x86.dot_i16i8_8x2",
        "x86.dot_i16i16_8x2",
        "x86.dot_bf16_8x2",
    }
    assert names(ARM) == {"arm.dot_i8i8_4x4"}
    assert names(GEMM_UNIT_TARGET) == {n for n in INTRINSICS if n.startswith("gemm_unit")}
    assert names(cpu("sse4")) == set()


WITHOUT_VNNI_512 = ["x86.dot_i16i8_16x2", "x86.dot_i16i16_16x2", "x86.dot_u8i8_16x4_pairs"]
WITHOUT_VNNI_256 = ["x86.dot_i16i8_8x2", "x86.dot_i16i16_8x2", "x86.dot_u8i8_8x4", "x86.dot_bf16_8x2"]


@pytest.mark.parametrize(
    ("features", "bits", "wanted"),
    [
        (("+avx512bw", "+avx512vl", "+avx512vnni"), 512, ["x86.dot_u8i8_16x4", *WITHOUT_VNNI_512]),
        (("+avx512bw", "+avx512vl"), 512, WITHOUT_VNNI_512),
        (("+avx2", "+avxvnni"), 256, ["x86.dot_u8i8_8x4_vnni", *WITHOUT_VNNI_256]),
        (("+avx2",), 256, WITHOUT_VNNI_256),
        ((), 128, []),
    ],
)
def test_dot_products_fill_the_widest_vectors_and_the_fastest_is_first(
    features: tuple[str, ...], bits: int, wanted: list[str]
) -> None:
    target = cpu("sse4").having(features=features, vector_bits=bits)
    assert list(dot_products(target)) == wanted
    for name, shape in dot_products(target).items():
        instruction = INTRINSICS[name]
        _, a, b = (p.dtype for p in instruction.semantics.params if isinstance(p, Buffer))
        assert (shape.a, shape.b) == (a, b)
        assert [f.extent.value for f in instruction.loops if isinstance(f.extent, Const)] == [shape.lanes, shape.group]


def test_arm_has_one_instruction_for_it() -> None:
    program = lower(Program((INTRINSICS["arm.dot_i8i8_4x4"].implementation,)), ARM)
    assert "sdot" in assembly(program, ARM)


@pytest.mark.parametrize(
    ("name", "instruction"),
    [("x86.dot_u8i8_16x4", "vpdpbusd"), ("x86.dot_bf16_16x2", "vdpbf16ps"), ("x86.dot_u8i8_8x4", "vpmaddwd")],
)
def test_x86_has_one_instruction_for_it(name: str, instruction: str) -> None:
    features = ("+avx2", "+avx512bf16", "+avx512bw", "+avx512f", "+avx512vl", "+avx512vnni")
    target = cpu("avx512").having(features=features)
    assert instruction in assembly(lower(Program((INTRINSICS[name].implementation,)), target), target)


def test_a_target_without_the_instruction_is_named() -> None:
    program = lower(Program((INTRINSICS["x86.dot_u8i8_16x4"].implementation,)), cpu("avx2"))
    with pytest.raises(LoweringError) as caught:
        llvm_text(program, cpu("avx2"))
    assert str(caught.value) == (
        "function implementation: the target cpu -mattr=avx2 has no dot product of u8x64 and i8x64\n"
        "  hint: tensorize with an intrinsic of this target"
    )


GOOD = """
def semantics(C: i32[4], A: buffer("global", i32[4], strides=(1,))):
    for i in range(0, 4):
        with block("copy", vi=spatial(4, i)):
            C[vi] = A[vi]

def implementation(C: i32[4], A: buffer("global", i32[4], strides=(1,))):
    a = view(A, 0, i32[4])
    C[ramp(0, 1, 4)] = a[ramp(0, 1, 4)]
"""
BAD = [
    ("def implementation", "def other", "is to have two functions: semantics and implementation"),
    ("def implementation(C: i32[4]", "def implementation(C: i32[8]", "have different parameters"),
    ("spatial(4, i)", "spatial(8, i + 2)", "is to bind each axis of its block to one loop"),
    ("spatial(4, i)", "ordered(4, i)", "are to be spatial, or reduced over"),
    ("C[vi] = A[vi]", "C[vi] = A[vi]\n            C[vi] = A[vi]", "is to be one assignment"),
    ("C[vi] = A[vi]", "C[0] = A[vi]", "is to write each element of C"),
    (
        '        with block("copy", vi=spatial(4, i)):\n            C[vi] = A[vi]',
        "        C[i] = A[i]",
        "loops around one block",
    ),
    ("view(A, 0, i32[4])", "view(C, 0, i32[4])", "is to view whole parameters that are dense"),
]


def test_a_declaration() -> None:
    i = TensorIntrinsic("copy", GOOD)
    assert str(i.program) == str(parse_program(GOOD))
    assert [f.var.name for f in i.loops] == ["i"]


@pytest.mark.parametrize(("old", "new", "message"), BAD)
def test_what_is_no_declaration_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(VerifyError, match=message):
        str(TensorIntrinsic("copy", GOOD.replace(old, new)).program)
