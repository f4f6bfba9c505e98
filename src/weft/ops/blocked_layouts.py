"""Operators that rearrange elements for the machine: channels, vectors, weights and matrices in blocks, padded with zeros."""

from __future__ import annotations

from weft.ir import INDEX, ZERO, Const, Expr, as_expr, ceil_div, const, index, select
from weft.ops.registry import operator
from weft.ops.shapes import sized
from weft.te import Tensor, compute


def _within(i: Expr, size: Expr, padded: Expr, value: Expr) -> Expr:
    """Returns *value* where *i* is inside, else zero; the test is left out where there is no padding."""
    if isinstance(size, Const) and isinstance(padded, Const) and size.value == padded.value:
        return value
    return select(i < size, value, const(0, value.dtype))


def _blocks(size: Expr, block: int) -> tuple[Expr, Expr]:
    """Returns the number of blocks that cover *size*, and the padded size."""
    count = sized(ceil_div(size, block))[0]
    return count, sized(count * block)[0]


def columns_of_panels(
    made: Tensor, columns: int | Expr, name: str, *, has_rows: bool, bias: Tensor | None = None
) -> Tensor:
    """[*B, M, N/block, block] to [*B, M, columns], without M (which is 1) unless it *has_rows*; *bias* [columns] is added."""
    block = made.shape[-1]
    shape = (*(made.shape[:-2] if has_rows else made.shape[:-3]), as_expr(columns, INDEX))

    def unpacked(*i: Expr) -> Expr:
        lead = i[:-1] if has_rows else (*i[:-1], ZERO)
        e = made[(*lead, i[-1] // block, i[-1] % block)]
        return e if bias is None else e + bias[i[-1]]

    return compute(shape, unpacked, name, dtype=made.dtype)


@operator("pack_channels")
def pack_channels(x: Tensor, *, block: int) -> Tensor:
    """[N, C, *S] to [N, C/block, *S, block]: *block* channels of one place side by side."""
    count, padded = _blocks(x.shape[1], block)
    shape = (x.shape[0], count, *x.shape[2:], index(block))

    def packed(*i: Expr) -> Expr:
        c = i[1] * block + i[-1]
        return _within(c, x.shape[1], padded, x[(i[0], c, *i[2:-1])])

    return compute(shape, packed, "pack_channels", dtype=x.dtype)


@operator("unpack_channels")
def unpack_channels(x: Tensor, *, channels: int) -> Tensor:
    """[N, C/b, *S, b] to [N, channels, *S]: the inverse of `pack_channels`."""
    block = x.shape[-1]
    shape = (x.shape[0], index(channels), *x.shape[2:-1])
    return compute(shape, lambda *i: x[(i[0], i[1] // block, *i[2:], i[1] % block)], "unpack_channels", dtype=x.dtype)


@operator("unpack_groups")
def unpack_groups(x: Tensor, *, group: int, kept: int) -> Tensor:
    """[N, group * P, *S, b] to [N, group, kept, *S]: of the P blocks of each group the first *kept* channels."""
    blocks, block = x.shape[1] // group, x.shape[-1]
    shape = sized(x.shape[0], group, kept, *x.shape[2:-1])

    def unpacked(n: Expr, g: Expr, c: Expr, *s: Expr) -> Expr:
        return x[(n, g * blocks + c // block, *s, c % block)]

    return compute(shape, unpacked, "unpack_groups", dtype=x.dtype)


@operator("pack_vector")
def pack_vector(v: Tensor, *, block: int) -> Tensor:
    """[C] to [C/block, block]."""
    count, padded = _blocks(v.shape[0], block)

    def packed(o: Expr, i: Expr) -> Expr:
        return _within(o * block + i, v.shape[0], padded, v[o * block + i])

    return compute((count, block), packed, "pack_vector", dtype=v.dtype)


@operator("pack_conv_weight")
def pack_conv_weight(w: Tensor, *, in_block: int, out_block: int) -> Tensor:
    """[OC, IC, *K] to [OC/o, IC/i, *K, i, o]: read in order by a convolution over blocked channels."""
    outer, padded_out = _blocks(w.shape[0], out_block)
    inner, padded_in = _blocks(w.shape[1], in_block)

    def packed(oo: Expr, ii: Expr, *at: Expr) -> Expr:
        *taps, i, o = at
        oc, ic = oo * out_block + o, ii * in_block + i
        return _within(oc, w.shape[0], padded_out, _within(ic, w.shape[1], padded_in, w[(oc, ic, *taps)]))

    return compute((outer, inner, *w.shape[2:], in_block, out_block), packed, "pack_conv_weight", dtype=w.dtype)


@operator("pack_conv_transpose_weight", prepares=True)
def pack_conv_transpose_weight(w: Tensor, *, in_block: int, out_block: int, strides: tuple[int, int]) -> Tensor:
    """[IC, OC, KH, KW] to [OC/o, sh, sw, IC/i, TH, TW, i, o]: the taps of each phase of the stride side by side.

    Tap (ty, tx) of phase (py, px) is w[.., py + ty * sh, px + tx * sw]; TH = KH/sh and TW = KW/sw, rounded up.
    """
    outer, padded_out = _blocks(w.shape[1], out_block)
    inner, padded_in = _blocks(w.shape[0], in_block)
    sh, sw = strides
    taps_y, padded_y = _blocks(w.shape[2], sh)
    taps_x, padded_x = _blocks(w.shape[3], sw)

    def packed(oo: Expr, py: Expr, px: Expr, ii: Expr, ty: Expr, tx: Expr, i: Expr, o: Expr) -> Expr:
        oc, ic, ky, kx = oo * out_block + o, ii * in_block + i, py + ty * sh, px + tx * sw
        value = _within(oc, w.shape[1], padded_out, _within(ic, w.shape[0], padded_in, w[ic, oc, ky, kx]))
        return _within(ky, w.shape[2], padded_y, _within(kx, w.shape[3], padded_x, value))

    shape = (outer, sh, sw, inner, taps_y, taps_x, in_block, out_block)
    return compute(shape, packed, "pack_conv_transpose_weight", dtype=w.dtype)


@operator("pack_depthwise_weight")
def pack_depthwise_weight(w: Tensor, *, block: int) -> Tensor:
    """[C, 1, *K] to [C/block, *K, block]."""
    count, padded = _blocks(w.shape[0], block)

    def packed(o: Expr, *at: Expr) -> Expr:
        *taps, i = at
        return _within(o * block + i, w.shape[0], padded, w[(o * block + i, ZERO, *taps)])

    return compute((count, *w.shape[2:], block), packed, "pack_depthwise_weight", dtype=w.dtype)


@operator("pack_matrix", prepares=True)
def pack_matrix(b: Tensor, *, block: int, trans: bool = False) -> Tensor:
    """[*B, K, N] (or [*B, N, K], when *trans*) to [*B, N/block, K, block]: panels of *block* columns, each read in order of K."""
    *batch, first, second = b.shape
    depth, columns = (second, first) if trans else (first, second)
    count, padded = _blocks(columns, block)

    def packed(*i: Expr) -> Expr:
        k, n = i[-2], i[-3] * block + i[-1]
        where = (n, k) if trans else (k, n)
        return _within(n, columns, padded, b[(*i[:-3], *where)])

    return compute((*batch, count, depth, index(block)), packed, "pack_matrix", dtype=b.dtype)


@operator("unpack_matrix", keeps_operand=True)
def unpack_matrix(p: Tensor, *, columns: int, trans: bool = False) -> Tensor:
    """[N/block, K, block] to [K, columns] (or [columns, K], when *trans*): the inverse of `pack_matrix`."""
    block = p.shape[2]
    if trans:
        return compute((columns, p.shape[1]), lambda n, k: p[n // block, k, n % block], "unpack_matrix", dtype=p.dtype)
    return compute((p.shape[1], columns), lambda k, n: p[n // block, k, n % block], "unpack_matrix", dtype=p.dtype)
