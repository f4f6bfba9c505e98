"""Warpgroup products (`wgmma`): writes the calls that `warpgroups` makes, and the helpers they use.

A matrix in swizzled shared memory is described by a descriptor: its address, the byte offset between the parts of a row that
is longer than a row of the memory, and the offset between groups of 8 rows, 1024 bytes ("Parallel Thread Execution ISA" 8.0,
section 9.7.15.5.1.2).
"""

from __future__ import annotations

from typing import Final

from weft.codegen.c_family.c_types import memory_type
from weft.codegen.c_family.writer import Writer
from weft.ir import Const
from weft.loop import Call
from weft.support.dtypes import DType, bf16, f16, i8, u32
from weft.targets.instructions import GROUP_COLUMNS, TURNED, sums_of

BEGIN, PRODUCT, COMMIT, WAIT = "cuda.group.begin", "cuda.group.product_", "cuda.group.commit", "cuda.group.wait"
"""A group's products begin, are made, are committed as one, and are awaited, but for so many of the last groups."""

REGISTERS: Final = "_registers"
_SHAPES: Final = {f16: "k16.f32.f16.f16", bf16: "k16.f32.bf16.bf16", i8: "k32.s32.s8.s8", u32: "k8.f32.tf32.tf32"}
"""The ends of the names of instructions, by the type of their factors."""
_ENDS: Final = {t: ("", "_across", REGISTERS, f"{REGISTERS}_across") if t in TURNED else ("",) for t in _SHAPES}
"""The ends of the names of helpers; *across*: the right factor has rows of columns, *registers*: the left one is in them."""


def product_of(dtype: DType, *, in_registers: bool = False) -> str:
    """Returns the callee of a product of factors of a type, the left of which may be in registers."""
    return f"{PRODUCT}{dtype}{REGISTERS if in_registers else ''}"


GROUP_CALLEES: Final = frozenset([product_of(t, in_registers=REGISTERS in end) for t in _SHAPES for end in _ENDS[t]])


def _sums(dtype: DType, n: int) -> tuple[str, str]:
    """Returns the places of a thread's sums of *n* columns in an instruction, and the operands bound to them."""
    letter = "f" if sums_of(dtype).is_float else "r"
    return ", ".join([f"%{k}" for k in range(n // 2)]), ", ".join([f'"+{letter}"((c)[{k}])' for k in range(n // 2)])


def _product_macro(dtype: DType, n: int) -> str:
    """Returns the macros of a product; those of floats take whether the right factor has rows of columns."""
    places, sums = _sums(dtype, n)
    first, second, *others = [f"%{n // 2 + k}" for k in range(5)]
    left, last = "{" + ", ".join([first, second, *others[:2]]) + "}", others[2]
    name = f"WEFT_GROUP_PRODUCT_{dtype}_{n}"
    begin = f"wgmma.mma_async.sync.aligned.m64n{n}{_SHAPES[dtype]} {{{places}}}"
    signs = ", 1, 1" if sums_of(dtype).is_float else ""
    turned = ', 0, " across ";"' if dtype in TURNED else ';"'
    of_registers = f"""#define {name}_registers(across, c, a0, a1, a2, a3, b) \\
  asm volatile("{begin}, {left}, {last}, 1{signs}, " across ";" \\
               : {sums} : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b))
"""
    return f"""#define {name}(across, c, a, b) \\
  asm volatile("{begin}, {first}, {second}, 1{signs}{turned} \\
               : {sums} : "l"(a), "l"(b))
{of_registers if dtype in TURNED else ""}\
#define WEFT_GROUP_KEEP_{n}(c) asm volatile("" : {sums} :: "memory")
"""


GROUP_MACROS: Final = """#define WEFT_MATRIX(p, apart) \\
  ((uint64_t)((WEFT_SHARED(p) & 0x3ffff) >> 4) | (uint64_t)((apart) >> 4) << 16 | (uint64_t)64 << 32 | (uint64_t)1 << 62)
#define WEFT_GROUP_BEGIN asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define WEFT_GROUP_COMMIT asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WEFT_GROUP_WAIT(n) asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(n) : "memory")
"""
"""The instructions but products, for the head of a source."""

PRODUCT_MACROS: Final = {
    f"{t}_{n}{end}": _product_macro(t, n) for t in _SHAPES for n in GROUP_COLUMNS for end in _ENDS[t]
}
"""The macros of products, by the end of the names of the helpers that use them."""

_REGISTER_HELPER: Final = """static inline void weft_group_NAME(SUM *c, const uint16_t *a, const void *b, int64_t apart) {
  WEFT_GROUP_PRODUCT_TYPE_COLUMNS_registers("ACROSS", c, weft_pair(a, 1), weft_pair(a + 2, 1), weft_pair(a + 4, 1),
                                            weft_pair(a + 6, 1), WEFT_MATRIX(b, apart));
}"""

_HELPER: Final = """static inline void weft_group_NAME(SUM *c, const void *a, const void *b, int64_t apart) {
  WEFT_GROUP_PRODUCT_TYPE_COLUMNS("ACROSS", c, WEFT_MATRIX(a, 16), WEFT_MATRIX(b, apart));
}"""

GROUP_HELPERS: Final = {
    f"group_{t}_{n}{end}": (_REGISTER_HELPER if REGISTERS in end else _HELPER)
    .replace("NAME", f"{t}_{n}{end}")
    .replace("COLUMNS", str(n))
    .replace("TYPE", str(t))
    .replace("SUM", memory_type(sums_of(t)))
    .replace("ACROSS", str(int("across" in end)))
    for t in _SHAPES
    for n in GROUP_COLUMNS
    for end in _ENDS[t]
}
"""The helpers of products, by name."""


def _write_product(f: Writer, s: Call) -> None:
    sums, left, right, columns, across, apart = s.args
    numbers = [int(n.value) for n in (columns, across) if isinstance(n, Const)]
    kind = s.callee.removeprefix(PRODUCT)
    dtype, end = kind.removesuffix(REGISTERS), REGISTERS if kind.endswith(REGISTERS) else ""
    name = f"group_{dtype}_{numbers[0]}{end}{'_across' if numbers[1] else ''}"
    with f.scope():
        f.line(f"{f.helper(name)}({', '.join([f.scalar(x) for x in (sums, left, right, apart)])});")


def _write_wait(f: Writer, s: Call) -> None:
    """Writes the wait; sums are not read before the last one."""
    count, sums, columns = s.args
    assert isinstance(count, Const)
    assert isinstance(columns, Const)
    f.line(f"WEFT_GROUP_WAIT({int(count.value)});")
    if int(count.value) == 0:
        with f.scope():
            f.line(f"WEFT_GROUP_KEEP_{int(columns.value)}({f.scalar(sums)});")


GROUP_PRODUCTS: Final = {
    BEGIN: lambda f, s: f.line("WEFT_GROUP_BEGIN;"),
    COMMIT: lambda f, s: f.line("WEFT_GROUP_COMMIT;"),
    WAIT: _write_wait,
    **dict.fromkeys(GROUP_CALLEES, _write_product),
}
"""The writers by the intrinsic."""
