"""Transposed convolutions as convolutions at stride 1, one for each phase of the stride.

Outputs whose positions leave the same remainder by the stride see the same taps, so that each *phase* is an ordinary convolution
(Dumoulin and Visin, "A guide to convolution arithmetic", 2016, section 4). With stride s, pads p and output position
o = s * q + r, the phase of r is (r + p) mod s, and its tap t reads the input at q + (r + p) div s - t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from weft.ir import Expr, all_of, ceil_div, const, select
from weft.ops.convolutions.conv import Ints, transposed_sizes
from weft.ops.registry import operator
from weft.ops.shapes import sized
from weft.te import Tensor, as_stored, compute, reduce_axis, sum_


@dataclass(frozen=True)
class Phases:
    """The phases of a stride in one dimension: `rows` outputs of each, from *size* outputs; some past the end."""

    stride: int
    pad: int
    taps: Expr
    size: Expr

    @property
    def rows(self) -> Expr:
        """How many outputs each remainder has, rounded up."""
        return sized(ceil_div(self.size, self.stride))[0]

    def padded(self, rows: Expr) -> Expr:
        """Returns the rows of the padded input that *rows* of all phases read; `taps` - 1 come before the input's first."""
        return sized(rows + (self.stride - 1 + self.pad) // self.stride + (self.taps - 1))[0]

    def phase(self, r: Expr) -> Expr:
        """Returns the phase of the outputs with remainder *r*: which taps it sees."""
        return (r + self.pad) % self.stride

    def first(self, r: Expr) -> Expr:
        """Returns where in the padded input the window of the first output with remainder *r* begins."""
        return (r + self.pad) // self.stride


def pad_for_phases(x: Tensor, y: Phases, z: Phases, rows: Expr, columns: Expr) -> Tensor:
    """Pads x [N, C, H, W, c] with zeros to the extents that *rows* and *columns* of the phases read."""
    before = y.taps - 1, z.taps - 1

    def pad(t: Tensor) -> Tensor:
        def padded(n: Expr, cb: Expr, i: Expr, j: Expr, c: Expr) -> Expr:
            h, v = i - before[0], j - before[1]
            inside = all_of([h >= 0, h < t.shape[2], v >= 0, v < t.shape[3]])
            return select(inside, t[n, cb, h, v, c], const(0, t.dtype))

        return compute((*t.shape[:2], y.padded(rows), z.padded(columns), t.shape[4]), padded, "pad", dtype=t.dtype)

    return as_stored(x, pad)


def interleave(made: Tensor, bias: Tensor | None, sizes: Sequence[Expr], strides: Ints) -> Tensor:
    """Puts the outputs of phases [N, OC/o, sh, sw, rows, columns, o] where they belong, and adds the bias."""
    sh, sw = strides

    def interleaved(n: Expr, ocb: Expr, oy: Expr, ox: Expr, oc: Expr) -> Expr:
        e = made[n, ocb, oy % sh, ox % sw, oy // sh, ox // sw, oc]
        return e if bias is None else e + bias[ocb, oc]

    shape = (made.shape[0], made.shape[1], *sizes, made.shape[6])
    return compute(shape, interleaved, "conv_transpose2d", dtype=made.dtype)


@operator("conv_transpose2d_blocked")
def conv_transpose2d_blocked(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    kernel: Ints,
    strides: Ints = (1, 1),
    pads: Ints = (0, 0, 0, 0),
    output_padding: Ints = (0, 0),
) -> Tensor:
    """Transposed convolution of x [N, C/i, H, W, i] with w [OC/o, sh, sw, C/i, TH, TW, i, o] to [N, OC/o, OH, OW, o].

    `pack_conv_transpose_weight` makes *w*; *kernel* is (KH, KW).
    """
    sizes = transposed_sizes(x.shape[2:4], sized(*kernel), strides, pads, (1, 1), output_padding)
    y, z = (Phases(strides[d], pads[d], w.shape[4 + d], sizes[d]) for d in (0, 1))
    p = pad_for_phases(x, y, z, y.rows, z.rows)
    icb, ty, tx, ic = (reduce_axis(s, n) for s, n in zip(w.shape[3:7], ("icb", "ty", "tx", "ic"), strict=True))

    def contraction(n: Expr, ocb: Expr, ry: Expr, rx: Expr, qy: Expr, qx: Expr, oc: Expr) -> object:
        at = (n, icb, qy + y.first(ry) + (y.taps - 1 - ty), qx + z.first(rx) + (z.taps - 1 - tx), ic)
        return sum_(p[at] * w[ocb, y.phase(ry), z.phase(rx), icb, ty, tx, ic, oc], [icb, ty, tx, ic])

    shape = (x.shape[0], w.shape[0], *sized(*strides), y.rows, z.rows, w.shape[7])
    made = compute(shape, contraction, "conv_transpose2d_phases", dtype=x.dtype)
    return interleave(made, bias, sizes, strides)


@operator("phase_weight", prepares=True)
def phase_weight(w: Tensor, *, strides: Ints, dilations: Ints | None = None, group: int = 1) -> Tensor:
    """[C, OC/group, *K] of a transposed convolution to [G * phases * OC/G, C/G, *T]: those of a convolution to all phases.

    Each group has the channels of each phase, in row-major order of the phases; T is K/stride, rounded up. Taps are turned
    around: a convolution reads a window forwards, a transposed one backwards. With *dilations*, there are zeros between taps.
    """
    per_in, per_out = w.shape[0] // group, w.shape[1]
    count, apart = prod(strides), [1] * len(strides) if dilations is None else dilations
    sizes = sized(*[(k - 1) * d + 1 for k, d in zip(w.shape[2:], apart, strict=True)])
    taps = sized(*[ceil_div(k, s) for k, s in zip(sizes, strides, strict=True)])

    def taken(c: Expr, ic: Expr, *t: Expr) -> Expr:
        phases = _digits(c // per_out % count, strides)
        at = [p + (n - 1 - i) * s for p, n, i, s in zip(phases, taps, t, strides, strict=True)]
        value = w[
            (c // (per_out * count) * per_in + ic, c % per_out, *[a // d for a, d in zip(at, apart, strict=True)])
        ]
        inside = [a < k for a, k, s in zip(at, sizes, strides, strict=True) if s > 1]
        inside += [a % d <= 0 for a, d in zip(at, apart, strict=True) if d > 1]
        return select(all_of(inside), value, const(0, w.dtype)) if inside else value

    return compute((*sized(per_out * (group * count), per_in), *taps), taken, "phase_weight", dtype=w.dtype)


@operator("interleave_phases")
def interleave_phases(x: Tensor, *, strides: Ints, offsets: Ints, sizes: tuple[Expr, ...], group: int = 1) -> Tensor:
    """[N, G * phases * C/G, *S] to [N, C, *sizes]: position o is that of phase (o + offset) mod s, at (o + offset) div s.

    The shuffle of Shi et al., "Real-time single image and video super-resolution using an efficient sub-pixel convolutional
    neural network" (CVPR 2016), with the phases outside the channels of each group.
    """
    count = prod(strides)
    per_group = x.shape[1] // (group * count)

    def shuffled(n: Expr, c: Expr, *o: Expr) -> Expr:
        at = [i + f for i, f in zip(o, offsets, strict=True)]
        phase: Expr = const(0, c.dtype)
        for i, s in zip(at, strides, strict=True):
            phase = phase * s + i % s
        channel = (c // per_group * count + phase) * per_group + c % per_group
        return x[(n, channel, *[i // s for i, s in zip(at, strides, strict=True)])]

    shape = (x.shape[0], *sized(per_group * group, *sizes))
    return compute(shape, shuffled, "interleave_phases", dtype=x.dtype)


def _digits(n: Expr, bases: Ints) -> list[Expr]:
    """Returns the digits of *n*, the most significant first."""
    found: list[Expr] = []
    for b in reversed(bases):
        found.insert(0, n % b)
        n = n // b
    return found
