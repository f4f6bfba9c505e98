"""Matrix tiles of x86 (AMX): eight registers of up to 16 rows of 64 bytes, and products of two tiles added to a third.

    C[rows, 16] += A[rows, 64 bytes] * B[16 groups, 16 columns of a group]

A group is 32 bits of neighbouring terms, 2 of bf16 or 4 bytes, as in the dot products of `x86`, and B is packed alike:
`[group][column][term]`. C lives in the scope "tile", of which a kernel has one buffer; A and B are read from ordinary memory, and
stay in tile registers as long as the code around asks for the same ones (Intel, "Intel 64 and IA-32 Architectures Software
Developer's Manual", 2024, volume 1, chapter 18).

A process has tiles where the system gives it their registers, see `native/rt/processor.c`. How many rows the tiles have is set
once for a nest of loops (`CONFIGURE`), and the registers are given up after it (`RELEASE`).

Sums of bf16 are rounded to nearest with the even one of two first, and numbers below the normal range count as zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from weft.support.dtypes import DType, bf16, f32, i8, i32, u8
from weft.targets.instructions.tensor_intrinsic import GROUP_BYTES, TensorIntrinsic, group_of
from weft.targets.scopes import TILE

MOST_ROWS: Final = 16
"""Rows of a tile register."""

TILE_LANES: Final = 16
"""Sums of 32 bits in a row of a tile."""

GROUPS: Final = 16
"""Groups of terms in a row of the left factor, rows of the right one."""

ROW_BYTES: Final = GROUPS * GROUP_BYTES
"""Bytes of a row of a tile register."""

SUM_TILES: Final = (0, 1, 2, 3)
LEFT_TILES: Final = (4, 5)
RIGHT_TILES: Final = (6, 7)
"""The registers by their contents: a kernel has as many sums as 2 x 2 products of tiles, for which each tile is loaded once."""

CONFIGURE: Final = "x86.amx_configure"
"""Sets the rows of the tiles, its only argument: those of sums and of left factors have that many, right factors all 16."""

RELEASE: Final = "x86.amx_release"
"""Gives the tile registers up."""


@dataclass(frozen=True)
class TileOperation:
    """An operation on a tile of sums of *rows*: it sets it to zero, adds a product to it, or stores it.

    A product is of elements *a* and *b*, a *group* of terms in 32 bits.
    """

    kind: Literal["zero", "multiply", "store"]
    rows: int
    sums: DType
    a: DType | None = None
    b: DType | None = None

    @property
    def group(self) -> int:
        """The terms of a group; 0 where nothing is multiplied."""
        return 0 if self.a is None else group_of(self.a)

    @property
    def name(self) -> str:
        """The name of the instruction."""
        if self.a is None or self.b is None:
            return f"x86.amx_{self.kind}_{self.sums}_{self.rows}x{TILE_LANES}"
        factors = str(self.a) if self.a is self.b else f"{self.a}{self.b}"
        return f"x86.amx_{factors}_{self.rows}x{TILE_LANES}x{GROUPS * self.group}"


_SUMS: Final = f'C: buffer("{TILE.name}", {{c}}[{{r}}, 16], strides=(tc, 1))'
_TEXTS: Final = {
    "zero": f"""
def semantics({_SUMS}, tc: i64):
    for i in range(0, {{r}}):
        for j in range(0, 16):
            with block("zero", vi=spatial({{r}}, i), vj=spatial(16, j)):
                C[vi, vj] = {{c}}(0)

def implementation({_SUMS}, tc: i64):
    call("{{name}}", C.at(0, 0), tc)
""",
    "store": f"""
def semantics(D: buffer("global", {{c}}[{{r}}, 16], strides=(td, 1)), {_SUMS}, td: i64, tc: i64):
    for i in range(0, {{r}}):
        for j in range(0, 16):
            with block("store", vi=spatial({{r}}, i), vj=spatial(16, j)):
                D[vi, vj] = C[vi, vj]

def implementation(D: buffer("global", {{c}}[{{r}}, 16], strides=(td, 1)), {_SUMS}, td: i64, tc: i64):
    call("{{name}}", D.at(0, 0), C.at(0, 0), td, tc)
""",
}
_FACTORS: Final = (
    'A: buffer("global", {a}[{r}, 16, {g}], strides=(ta, {g}, 1)),'
    ' B: buffer("global", {b}[16, 16, {g}], strides=(tb, {g}, 1)), tc: i64, ta: i64, tb: i64'
)
_TEXTS["multiply"] = f"""
def semantics({_SUMS}, {_FACTORS}):
    for i in range(0, {{r}}):
        for j in range(0, 16):
            for k in range(0, 16):
                for t in range(0, {{g}}):
                    with block("multiply", vi=spatial({{r}}, i), vj=spatial(16, j), vk=reduce(16, k), vt=reduce({{g}}, t)):
                        C[vi, vj] = C[vi, vj] + {{c}}(A[vi, vk, vt]) * {{c}}(B[vk, vj, vt])

def implementation({_SUMS}, {_FACTORS}):
    call("{{name}}", C.at(0, 0), A.at(0, 0, 0), B.at(0, 0, 0), tc, ta, tb)
"""


def _operations(rows: int) -> list[TileOperation]:
    made = [TileOperation(kind, rows, sums) for kind in ("zero", "store") for sums in (f32, i32)]
    factors = ((bf16, bf16, f32), (u8, i8, i32), (i8, i8, i32))
    return [*made, *[TileOperation("multiply", rows, sums, a, b) for a, b, sums in factors]]


TILE_OPERATIONS: Final = {o.name: o for rows in range(1, MOST_ROWS + 1) for o in _operations(rows)}
"""The operations on tiles, by the names of their instructions."""


def _feature(o: TileOperation) -> tuple[str, ...]:
    if o.a is None:
        return ("amx-tile",)
    return ("amx-tile", "amx-bf16" if o.a is bf16 else "amx-int8")


def _declared(o: TileOperation) -> TensorIntrinsic:
    text = _TEXTS[o.kind].format(name=o.name, r=o.rows, c=o.sums, a=o.a, b=o.b, g=o.group)
    return TensorIntrinsic(o.name, text, _feature(o))


AMX: Final = tuple([_declared(o) for o in TILE_OPERATIONS.values()])
