"""A matrix unit as accelerators have it: 16x16 products of bytes, between memories of its own; a model for the interpreter.

Its buffers live in the scopes "inp", "wgt" and "acc"; the weights are stored with the reduced axis last. Three units share the
work: one loads tiles from ordinary memory, one computes, one stores tiles of results (Moreau et al., "A Hardware-Software
Blueprint for Flexible Deep Learning Specialization", 2019, section 2). A fourth is the processor that they are attached to.
"""

from __future__ import annotations

from typing import Final

from weft.targets.instructions.tensor_intrinsic import TensorIntrinsic
from weft.targets.records import Caches, Isa, Unit
from weft.targets.scopes import CPU_SCOPES, Scope, Sight
from weft.targets.target import Target

_MULTIPLY = (
    'acc: buffer("acc", i32[16, 16], strides=(ta, 1)), inp: buffer("inp", i8[16, 16], strides=(ti, 1)),'
    ' wgt: buffer("wgt", i8[16, 16], strides=(tw, 1)), ta: i64, ti: i64, tw: i64'
)
_CLEAR = 'acc: buffer("acc", i32[16, 16], strides=(ta, 1)), ta: i64'
_MOVE = 'to: buffer("{to}", {t}[16, 16], strides=(tt, 1)), of: buffer("{of}", {t}[16, 16], strides=(tf, 1)), tt: i64, tf: i64'


def _move(name: str, to: str, of: str, dtype: str) -> TensorIntrinsic:
    """Moves a tile from one memory to another."""
    operands = _MOVE.format(to=to, of=of, t=dtype)
    text = f"""
def semantics({operands}):
    for i in range(0, 16):
        for j in range(0, 16):
            with block("move", vi=spatial(16, i), vj=spatial(16, j)):
                to[vi, vj] = of[vi, vj]

def implementation({operands}):
    call("{name}", to.at(0, 0), of.at(0, 0), tt, tf)
"""
    return TensorIntrinsic(name, text, ("gemm_unit",))


GEMM_UNIT: Final = (
    TensorIntrinsic(
        "gemm_unit.multiply",
        f"""
def semantics({_MULTIPLY}):
    for i in range(0, 16):
        for j in range(0, 16):
            for k in range(0, 16):
                with block("multiply", vi=spatial(16, i), vj=spatial(16, j), vk=reduce(16, k)):
                    acc[vi, vj] = acc[vi, vj] + i32(inp[vi, vk]) * i32(wgt[vj, vk])

def implementation({_MULTIPLY}):
    call("gemm_unit.multiply", acc.at(0, 0), inp.at(0, 0), wgt.at(0, 0), ta, ti, tw)
""",
        ("gemm_unit",),
    ),
    TensorIntrinsic(
        "gemm_unit.clear",
        f"""
def semantics({_CLEAR}):
    for i in range(0, 16):
        for j in range(0, 16):
            with block("clear", vi=spatial(16, i), vj=spatial(16, j)):
                acc[vi, vj] = i32(0)

def implementation({_CLEAR}):
    call("gemm_unit.clear", acc.at(0, 0), ta)
""",
        ("gemm_unit",),
    ),
    _move("gemm_unit.load_inp", "inp", "global", "i8"),
    _move("gemm_unit.load_wgt", "wgt", "global", "i8"),
    _move("gemm_unit.store", "global", "acc", "i32"),
)

GEMM_UNIT_TARGET: Final = Target(
    name="gemm_unit",
    kind="unit",
    backend="",
    isa=Isa(features=("+gemm_unit",), vector_bits=32, vector_registers=16),
    caches=Caches(l1=32 << 10, l2=32 << 10, l3=128 << 10),
    scopes=(*CPU_SCOPES, *[Scope(s, Sight.GRID) for s in ("inp", "wgt", "acc")]),
    units=(
        Unit("load", ("gemm_unit.load_inp", "gemm_unit.load_wgt"), fills=("inp", "wgt")),
        Unit("execute", ("gemm_unit.clear", "gemm_unit.multiply"), fills=("acc",)),
        Unit("store", ("gemm_unit.store",), empties=("acc",)),
        Unit("host", fills=("global", "local", "register")),
    ),
)
"""A machine with the unit: it can be scheduled for and interpreted, not compiled for."""
