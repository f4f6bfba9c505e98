"""How the tiles of a convolution by Winograd's method are numbered, and cut to sizes that fit the image.

Tiles that overhang the edge waste multiplications. Where some are smaller by one row or column instead, these take part at the
first points only, and are numbered so that the tiles that take part at a point follow one another:

    +-------+---+        A tile with fewer columns takes part at the first points of columns alone, one with fewer rows at
    |   1   | 0 |        those of rows. So there are
    |       |   |           0 1 2 3   at the first points of rows and of columns,
    +-------+---+           0 1       at the first of columns alone,
    |   2   | 3 |             1 2     at the first of rows alone,
    +-------+---+             1       at the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from weft.ir import ONE, ZERO, Const, Expr, Var, ceil_div, simplify
from weft.ops.cases import piecewise
from weft.ops.convolutions.conv import Ints
from weft.ops.shapes import show_shape, size_bounds, sized
from weft.support.errors import TypeMismatch


@dataclass(frozen=True)
class Tiles:
    """How the tiles of all images are numbered: `patch` has the images, rows and columns of a patch, `count` those of patches."""

    patch: tuple[Expr, ...]
    count: tuple[Expr, ...]

    @staticmethod
    def of(sizes: Sequence[Expr], patch: Ints | None) -> Tiles:
        """Returns the numbering of images, rows and columns of tiles; the last patches of a dimension may overhang."""
        chosen = sized(*(sizes if patch is None else patch))
        return Tiles(chosen, sized(*[ceil_div(s, p) for s, p in zip(sizes, chosen, strict=True)]))

    @property
    def patches(self) -> Expr:
        """The number of patches."""
        return sized(self.count[0] * self.count[1] * self.count[2])[0]

    @property
    def in_patch(self) -> Expr:
        """The number of tiles in a patch."""
        return sized(self.patch[0] * self.patch[1] * self.patch[2])[0]

    @property
    def in_frame(self) -> Expr:
        """The number of tiles of one image in a patch."""
        return sized(self.patch[1] * self.patch[2])[0]

    def position(self, g: Expr, t: Expr) -> tuple[Expr, ...]:
        """Returns the image, the row and the column of tiles of tile *t* in patch *g*."""
        (pb, py, pz), (_, cy, cz) = self.patch, self.count
        return g // (cy * cz) * pb + t // (py * pz), g // cz % cy * py + t // pz % py, g % cz * pz + t % pz

    def number(self, at: Sequence[Expr]) -> tuple[Expr, Expr]:
        """Returns the patch, and the tile in it, of an image, a row and a column of tiles: the inverse of `position`."""
        (pb, py, pz), (_, cy, cz), (b, y, z) = self.patch, self.count, at
        return (b // pb * cy + y // py) * cz + z // pz, (b % pb * py + y % py) * pz + z % pz


@dataclass(frozen=True)
class Part:
    """The tiles of `size` outputs from the row and the column `first` on; `begin` tiles of a patch come before them."""

    size: tuple[int, int]
    first: tuple[Expr, ...]
    outputs: tuple[Expr, ...]
    tiles: Tiles
    begin: Expr

    @property
    def end(self) -> Expr:
        """The number of tiles in a patch up to the end of this part."""
        return sized(self.begin + self.tiles.in_patch)[0]

    @property
    def last(self) -> tuple[Expr, ...]:
        """The row and the column after the last output."""
        return sized(*[first + n for first, n in zip(self.first, self.outputs[1:], strict=True)])

    def place(self, at: Sequence[Expr]) -> tuple[Expr, Expr, Expr, Expr]:
        """Returns the patch of the output *at* an image, a row and a column; its tile in this part of it; and its place there."""
        (y, z), (my, mz) = (v - first for v, first in zip(at[1:], self.first, strict=True)), self.size
        found = *self.tiles.number((at[0], y // my, z // mz)), y % my, z % mz
        g, t, i, j = (_simplified(e, at, (ZERO, *self.first), self.outputs) for e in found)
        return g, t, i, j

    def corner(self, g: Expr, t: Expr) -> tuple[Expr, Expr, Expr]:
        """Returns the image of tile *t* of those here in patch *g*, and the row and the column of its first output."""
        image, *at = self.tiles.position(g, t)
        found = image, *[v * m + first for v, m, first in zip(at, self.size, self.first, strict=True)]
        sizes = self.tiles.patches, self.tiles.in_patch
        b, y, z = (_simplified(e, (g, t), (ZERO, ZERO), sizes) for e in found)
        return b, y, z


def _simplified(e: Expr, axes: Sequence[Expr], begins: Sequence[Expr], sizes: Sequence[Expr]) -> Expr:
    """Returns *e* simplified, *axes* being indices from *begins* on of as many as *sizes* tells."""
    bounds = size_bounds(e, *begins, *sizes)
    for a, begin, size in zip(axes, begins, sizes, strict=True):
        if isinstance(a, Var):
            bounds = bounds.bind(a, begin, begin + size - ONE)
    return simplify(e, bounds)


@dataclass(frozen=True)
class Points:
    """The points from `begin` to `end` of rows and of columns, at which the tiles of `parts` take part, one after another."""

    begin: tuple[int, int]
    end: tuple[int, int]
    parts: tuple[Part, ...]

    @property
    def first(self) -> Expr:
        """The number of the first tile."""
        return self.parts[0].begin

    @property
    def tiles(self) -> Expr:
        """How many tiles take part."""
        return sized(self.parts[-1].end - self.first)[0]


def cut_in_tiles(outputs: Sequence[Expr], m: int, patch: Ints | None, *, mixed: bool) -> tuple[Part, ...]:
    """Returns the parts that the *outputs*, of images, rows and columns, are in: one of tiles of *m*, unless they are *mixed*.

    Raises `TypeMismatch` for mixed tiles on sizes that are not known, or in patches of less than an image.
    """
    images, *sides = outputs
    if not mixed:
        tiles = Tiles.of((images, *sized(*[ceil_div(s, m) for s in sides])), patch)
        return (Part((m, m), (ZERO, ZERO), tuple(outputs), tiles, ZERO),)
    rows, columns = (_cut(s, m) for s in sides)
    whole = tuple(sum(count for _, _, count, _ in side) for side in (rows, columns))
    if patch is not None and tuple(patch[1:]) != whole:
        raise TypeMismatch(f"mixed tiles are those of whole images, here {whole}, not of patches of {tuple(patch[1:])}")
    around = [(rows[0], columns[-1]), (rows[0], columns[0]), (rows[-1], columns[0]), (rows[-1], columns[-1])]
    parts: list[Part] = []
    for (my, y, ny, oy), (mz, z, nz, oz) in dict.fromkeys(around):
        tiles = Tiles.of((images, *sized(ny, nz)), None if patch is None else (patch[0], ny, nz))
        begin = parts[-1].end if parts else ZERO
        parts.append(Part((my, mz), sized(y, z), (images, *sized(oy, oz)), tiles, begin))
    return tuple(parts)


def _cut(side: Expr, m: int) -> list[tuple[int, int, int, int]]:
    """Returns the sizes of tiles along a side, the first output of each size, how many tiles it has and how many outputs."""
    if not isinstance(side, Const):
        raise TypeMismatch(f"tiles are mixed for images of known sizes, not {show_shape([side])}")
    found: list[tuple[int, int, int, int]] = []
    first = 0
    for size, count in mixed_sizes(int(side.value), m).items():
        found.append((size, first, count, size * count))
        first += size * count
    return found


def mixed_sizes(side: int, m: int) -> dict[int, int]:
    """Returns how many tiles of which sizes *side* outputs are cut into: the fewest of at most *m*, the larger ones first.

    These have one output more.
    """
    count = -(-side // m)
    size = -(-side // count)
    small = count * size - side
    return {n: k for n, k in ((size, count - small), (size - 1, small)) if k}


def covered(parts: Sequence[Part], taps: int) -> tuple[Expr, ...]:
    """Returns the rows and columns of the padded input that all tiles together read, for windows of *taps*."""
    last = _in_rows(parts)[-1][-1]
    counts = [c * p for c, p in zip(last.tiles.count[1:], last.tiles.patch[1:], strict=True)]
    return sized(*[at + n * m + (taps - 1) for at, n, m in zip(last.first, counts, last.size, strict=True)])


def by_place(parts: Sequence[Part], y: Expr, z: Expr, value: Callable[[Part], Expr]) -> Expr:
    """Returns the *value* of the part that the output at row *y* and column *z* is in."""
    rows = _in_rows(parts)
    pieces = [piecewise(z, [(part.last[1], value(part)) for part in row]) for row in rows]
    return piecewise(y, [(row[0].last[0], piece) for row, piece in zip(rows, pieces, strict=True)])


def _in_rows(parts: Sequence[Part]) -> list[list[Part]]:
    """Returns the parts by the rows and columns that they begin at."""
    rows: dict[Expr, list[Part]] = {}
    for part in sorted(parts, key=lambda p: p.size, reverse=True):
        rows.setdefault(part.first[0], []).append(part)
    return list(rows.values())


def points_of(parts: Sequence[Part], taps: int) -> list[list[Points]]:
    """Returns the points of windows of *taps* by rows and by columns, cut where tiles of a smaller size end."""
    cuts = [[0, *sorted({p.size[d] + taps - 1 for p in parts})] for d in range(2)]
    return [
        [
            Points((a, c), (b, d), tuple([p for p in parts if p.size[0] + taps > b and p.size[1] + taps > d]))
            for c, d in pairwise(cuts[1])
        ]
        for a, b in pairwise(cuts[0])
    ]
