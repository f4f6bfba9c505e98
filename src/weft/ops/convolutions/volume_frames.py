"""The frames of volumes, which Winograd's method transforms as images: those that are made, and those read for them.

The frames of all volumes are numbered one after another, as a batch of images is; a patch has some of one volume. Output frame
*d* reads *taps* frames of the padded input from `d * stride` on, and the frames that the outputs of a patch read overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir import ONE, ZERO, Const, Expr, Var, simplify
from weft.ops.convolutions.conv import Ints
from weft.ops.convolutions.winograd_tiles import Part
from weft.ops.shapes import show_shape, size_bounds, sized
from weft.support.errors import TypeMismatch
from weft.te import Tensor


@dataclass(frozen=True)
class Frames:
    """The frames of *volumes* with *depth* output frames each, or images, of which each is a volume of one frame.

    *patch* is that of tiles, (frames, rows, columns), if there is one.
    """

    volumes: Expr
    depth: Expr
    taps: int = 1
    stride: int = 1
    patch: Ints | None = None
    are_images: bool = True

    @property
    def made(self) -> Expr:
        """The number of output frames of all volumes."""
        return self.volumes if self.are_images else sized(self.volumes * self.depth)[0]

    @property
    def read_of_volume(self) -> Expr:
        """How many frames of the padded input a volume's outputs read."""
        return sized((self.depth - 1) * self.stride + self.taps)[0]

    def tiles_read(self, part: Part) -> Expr:
        """Returns how many tiles of *part* a patch reads: those of all frames under its outputs' windows."""
        tiles = part.tiles
        if self.taps == 1 and self.stride == 1:
            return tiles.in_patch
        return sized(tiles.in_frame * ((tiles.patch[0] - 1) * self.stride + self.taps))[0]

    def number(self, n: Expr, d: Sequence[Expr]) -> Expr:
        """Returns the number of the output frame *d*, () of an image, of volume *n*."""
        if not d:
            return n
        return d[0] if self.volumes is ONE else n * self.depth + d[0]

    def corner(self, part: Part, g: Expr, t: Expr) -> tuple[Expr, list[Expr], Expr, Expr]:
        """Returns the volume, the frame of the padded input, [] of an image, and the first row and column of a tile.

        It is tile *t* of those that patch *g* reads.
        """
        if self.are_images:
            b, y, z = part.corner(g, t)
            return b, [], y, z
        tiles = part.tiles
        first, y, z = part.corner(g, t % tiles.in_frame)
        bounds = size_bounds(first, self.volumes, self.depth)
        for v, size in ((g, tiles.patches), (t, self.tiles_read(part))):
            if isinstance(v, Var):
                bounds = bounds.bind(v, ZERO, size - ONE)
        n, d = simplify(first // self.depth, bounds), first % self.depth * self.stride + t // tiles.in_frame
        return n, [simplify(d, bounds)], y, z


def frames_of(
    x: Tensor, sizes: Sequence[Expr], kernel: Ints, strides: Ints, patch: Ints | None, *, mixed: bool
) -> Frames:
    """Returns the frames of *x* [N, C/c, H, W, c], or [N, C/c, D, H, W, c], for outputs of *sizes* in *patch* of tiles.

    Raises `TypeMismatch` where a volume's tiles are *mixed*, or a patch has several frames that are not neighbours, or are no
    part of a volume.
    """
    if len(sizes) == 2:
        return Frames(x.shape[0], ONE, patch=patch)
    depth, taps, stride = sizes[0], kernel[0], strides[0]
    if mixed:
        raise TypeMismatch("tiles of several sizes are for images, not for volumes")
    if patch is None:  # all tiles of a volume
        raise TypeMismatch("the tiles of volumes are computed in patches: give the frames, rows and columns of one")
    if patch[0] > 1 and stride > 1:
        raise TypeMismatch(
            f"a patch of {patch[0]} frames has no steps of {stride} between them: give a patch of one frame"
        )
    if patch[0] > 1 and not (isinstance(depth, Const) and int(depth.value) % patch[0] == 0):
        raise TypeMismatch(
            f"patches of {patch[0]} frames are not whole in {show_shape([depth])}: give a divisor, or one frame"
        )
    return Frames(x.shape[0], depth, taps, stride, patch, are_images=False)
