"""Computes contractions of bytes by the machine's dot products, on weights packed in groups of neighbouring terms.

    matmul(a - za, b - zb)     becomes     matmul_grouped(a, pack_matrix_groups(b)) - za * sum(b) - zb * (sum(a) - K * za)
    conv2d(a - za, b - zb)     becomes     conv2d_integer(a, b, za) - za * sum(b) - zb * sum_pool2d(sum(a - za))

The instructions multiply bytes of fixed signs as they lie. Bytes of the other sign have their highest bit flipped, which adds 128
to them and to their zero point, and zero points become corrections by sums over the reduction: those of constant weights are
computed once, and are zero where a weight less its zero point still fits a byte (Jacob et al., "Quantization and training of
neural networks for efficient integer-arithmetic-only inference", CVPR 2018, section 2.3). Where an instruction takes rows of 16
bits, they hold bytes less their zero points, which need no correction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from weft.cost import (
    ByteFragments,
    ByteProduct,
    GroupedOperands,
    Planner,
    byte_fragment_plans,
    grouped_plans,
    subject_of,
)
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.passes.quantized.fold_dequantization import MOST_EXACT, may_sum
from weft.graph.passes.quantized.quantized_patterns import BYTES, Centred, call_of, centred, is_byte, known, operand_of
from weft.graph.rewriting.call_patterns import is_known
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE, Const, Expr
from weft.support.dtypes import DType, f32, i8, i32, parse_dtype, u8

SIGN: Final = -i8.int_range[0]
"""The number that flipping the highest bit of a byte adds to or takes from it, as signed and unsigned bytes."""


MOST_WHOLE: Final = int(1 / np.finfo(np.float32).eps)
"""Half the number up to which float32 has all integers: a sum of two such is exact."""


def choose_dot_products(graph: Graph, planner: Planner) -> Graph:
    """Returns *graph* with products and convolutions of bytes in the form of dot products, where the machine has these."""
    return rewrite_graph(graph, _Grouping(planner).rewrite)


@dataclass(frozen=True)
class _Factor:
    """Elements of the type that an instruction takes, and their zero point in 32 bits; None for 0."""

    q: Value
    zero: Value | None


class _Grouping:
    """The bytes of each tensor with the other sign, and of each weight in another order, made once for all of their users."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.flipped: dict[Value, Value] = {}
        self.turned: dict[Value, Constant] = {}
        self.columns: dict[Value, Value] = {}
        self.wide: dict[tuple[Value, DType], Value] = {}

    def rewrite(self, new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        """Returns the replacement of a contraction of bytes; None for any other node."""
        if node.op not in ("matmul", "conv2d") or node.output.dtype is not i32:
            return None
        a, b = centred(inputs[0]), self._right_operand(inputs[1])
        if a is None or b is None:
            return None
        made = self._matmul(new, node, a, b) if node.op == "matmul" else self._convolution(new, node, inputs, a, b)
        return None if made is None else [made]

    def _right_operand(self, v: Value | None) -> Centred | None:
        """Returns the bytes and the zero point of a right factor; a constant that is transposed is one in the new order."""
        found = centred(v)
        before = None if found is None else operand_of("transpose", found.q)
        if found is None or not is_known(before):
            return found
        if found.q not in self.turned:
            node = found.q.producer
            assert node is not None  # call_of said so
            array = np.ascontiguousarray(before.array.transpose(node.attribute("perm")))
            self.turned[found.q] = Constant(f"{before.name}_transposed", array)
        return Centred(found.value, self.turned[found.q], found.zero)

    def _matmul(self, new: Graph, node: Node, a: Centred, b: Centred) -> Value | None:
        depth, columns = b.q.shape[-2] if b.q.rank > 1 else ONE, node.output.shape[-1] if node.output.rank else ONE
        if b.q.rank < 2 or not isinstance(depth, Const) or not isinstance(columns, Const) or not _are_of_rows(a, b):
            return None
        rows = node.output.shape[-2] if a.q.rank > 1 else ONE
        size, wide = int(depth.value), int(columns.value)
        if self.planner.is_grid:
            return self._in_fragments(new, node, a, b, ByteProduct(_known(rows), size, wide, _has_rows_of_terms(b.q)))
        form = self._form(node, b.q, rows, columns)
        if form is None:
            return None
        x, w = self.left(new, a, form.left), self.right(new, b, form.right)
        q = x.q
        if size % form.group:
            nothing = (0,) * (q.rank - 1)
            q = new.add("pad", [q], pads=(*nothing, 0, *nothing, -size % form.group), source=node.source)
        panels = new.add("pack_matrix_groups", [w.q], block=form.panel, group=form.group, name=f"{w.q.name}_packed")
        product = new.add("matmul_grouped", [q, panels], columns=wide, source=node.source)
        return _less_zeros(new, x, w, product, size)

    def _in_fragments(self, new: Graph, node: Node, a: Centred, b: Centred, p: ByteProduct) -> Value | None:
        """Returns a product of bytes in fragments, where a grid has them and they are faster."""
        plans = partial(byte_fragment_plans, p)
        if a.q.rank < 2 or b.q.rank != 2:
            return None
        if not self.planner.decide(subject_of(node.output.name), ByteFragments, plans).multiplied:
            return None
        x, w = self.left(new, a, str(i8)), self.right(new, b, str(i8))
        product = new.add("matmul_summed", [x.q, self._by_columns(new, w.q)], trans=True, source=node.source)
        return _less_zeros(new, x, w, product, p.depth)

    def _by_columns(self, new: Graph, q: Value) -> Value:
        """Returns a right factor with the terms of each column side by side."""
        before = operand_of("transpose", q)
        if before is not None:
            return before
        if q not in self.columns:
            name = f"{q.name}_by_columns"
            self.columns[q] = (
                Constant(name, np.ascontiguousarray(q.array.T))
                if is_known(q)
                else new.add("transpose", [q], perm=(1, 0), name=name)
            )
        return self.columns[q]

    def _convolution(self, new: Graph, node: Node, inputs: Inputs, a: Centred, b: Centred) -> Value | None:
        """Returns a convolution of one group in the form of dot products, or one of several in float32."""
        if node.output.rank != 4 or not isinstance(a.q.shape[1], Const):
            return None
        if node.attribute("group") != 1:
            return self._in_floats(new, node, inputs, a, b)
        form = self._form(node, b.q, None, node.output.shape[1])
        if form is None or not isinstance(b.q, Constant) or not _are_of_filters(a, b):
            return None
        x, w = self.left(new, a, form.left), self.right(new, b, form.right)
        zero = None
        if x.zero is not None and any(node.attribute("pads")):
            zero = new.add("cast", [x.zero], dtype=x.q.dtype)
        window = {k: node.attribute(k) for k in ("strides", "pads", "dilations")}
        sums = new.add("conv2d_integer", [x.q, w.q, zero], source=node.source, **window)
        shift = _shift(new, w.q, x.zero, inputs[2] if len(inputs) > 2 else None)
        if shift is not None:
            sums = new.add("sub", [sums, new.add("reshape", [shift], shape=(*shift.shape, 1, 1))], source=node.source)
        if w.zero is None:
            return sums
        of_channels = new.add("reduce_sum", [a.value], axes=(1,), keepdims=True)
        of_windows = new.add("sum_pool2d", [of_channels], kernel=b.q.extents[2:], **window)
        filters = new.add("reshape", [w.zero], shape=w.zero.shape[:-1]) if w.zero.rank else w.zero
        return new.add("sub", [sums, new.add("mul", [of_windows, filters])], source=node.source)

    def _in_floats(self, new: Graph, node: Node, inputs: Inputs, a: Centred, b: Centred) -> Value | None:
        """Returns a convolution in groups in float32, which adds the few products of each group without error.

        There is no dot product along a single channel, and floats are multiplied faster than integers of 32 bits. The sums are
        integers again, so that no scale after them goes into the weights, where it would be rounded.
        """
        bias = inputs[2] if len(inputs) > 2 else None
        if not may_sum(b.q, first=1, most=MOST_EXACT) or not _is_below(bias, MOST_WHOLE):
            return None
        wide = [None if v is None else new.add("cast", [v], dtype=f32) for v in (a.value, b.value, bias)]
        sums = new.add("conv2d", wide, source=node.source, **node.keywords)
        return new.add("cast", [sums], dtype=i32, source=node.source)

    def _form(self, node: Node, b: Value, rows: Expr | None, columns: Expr) -> GroupedOperands | None:
        """Decides on the form of a contraction with *b* on its right; None where it stays as it is."""
        known_rows = None if rows is None else _known(rows)
        width = int(columns.value) if isinstance(columns, Const) else 1
        subject = subject_of(node.output.name)
        is_packed = isinstance(b, Constant)
        found = self.planner.decide(
            subject, GroupedOperands, lambda m: grouped_plans(known_rows, width, m, is_packed=is_packed)
        )
        return found if found.group else None

    def left(self, new: Graph, x: Centred, kind: str) -> _Factor:
        """Returns a factor in elements of the *kind*: bytes, or wider ones less their zero point."""
        if (dtype := parse_dtype(kind)) in BYTES:
            return self._of_sign(new, x.q, x.zero, dtype)
        value, zero = (x.value, None) if is_byte(x.zero) else (x.q, x.zero)
        if (value, dtype) not in self.wide:
            self.wide[value, dtype] = new.add("cast", [value], dtype=dtype, name=f"{x.q.name}_wide")
        return _Factor(self.wide[value, dtype], zero)

    def right(self, new: Graph, x: Centred, sign: str) -> _Factor:
        """Returns a factor in bytes of the kind *sign*, without a zero point where it is constant and fits them."""
        whole = centred_bytes(x, sign)
        return _Factor(whole, None) if whole is not None else self._of_sign(new, x.q, x.zero, parse_dtype(sign))

    def _of_sign(self, new: Graph, q: Value, zero: Value | None, dtype: DType) -> _Factor:
        zero = None if known(zero) == 0 else zero
        if q.dtype is dtype:
            return _Factor(q, zero)
        before = _before_flip(q)
        if before is None and q not in self.flipped:
            self.flipped[q] = flip_sign(new, q, dtype)
        shift = SIGN if dtype is u8 else -SIGN
        return _Factor(before if before is not None else self.flipped[q], shifted(new, zero, shift))


def flip_sign(new: Graph, q: Value, dtype: DType) -> Value:
    """Returns bytes with their highest bit flipped, as *dtype*: each stands for the number 128 above or below."""
    bits = new.add("bit_cast", [q], dtype=u8) if q.dtype is not u8 else q
    turned = new.add("bit_xor", [bits, new.constant(np.asarray(SIGN, np.uint8))])
    return turned if dtype is u8 else new.add("bit_cast", [turned], dtype=dtype)


def _before_flip(q: Value) -> Value | None:
    """Returns the bytes that *q* are with their highest bit flipped; None if they are made otherwise."""
    bits = operand_of("bit_cast", q) or q
    flipped = call_of("bit_xor", bits)
    is_flip = len(flipped) == 2 and known(flipped[1]) == SIGN and bits is not q
    return flipped[0] if is_flip else None


def shifted(new: Graph, zero: Value | None, by: int) -> Value:
    """Returns a zero point, None for 0, with a number added."""
    number = new.constant(np.asarray(by, np.int32))
    return number if zero is None else new.add("add", [zero, number])


def centred_bytes(x: Centred, sign: str) -> Constant | None:
    """Returns a constant less its zero point in bytes of the kind *sign*; None where it is not known, or does not fit."""
    if not is_known(x.q) or (x.zero is not None and not is_known(x.zero)):
        return None
    dtype, zero = parse_dtype(sign), np.zeros((), np.int32) if x.zero is None else x.zero.array
    if x.q.dtype is dtype and not zero.any():
        return x.q
    low, high = dtype.int_range
    whole = x.q.array.astype(np.int32) - zero
    fits = whole.size == 0 or (int(whole.min()) >= low and int(whole.max()) <= high)
    return Constant(f"{x.q.name}_centred", whole.astype(dtype.numpy)) if fits else None


def _is_below(v: Value | None, bound: int) -> bool:
    """Tells whether the elements of *v*, if there is one, are known to be less than *bound* on either side of 0."""
    if v is None:
        return True
    return is_known(v) and bool((np.abs(v.array.astype(np.int64)) < bound).all())


def _shift(new: Graph, weight: Value, zero: Value | None, bias: Value | None) -> Value | None:
    """Returns for each filter the zero point's part of a convolution, less its bias; None for nothing."""
    if zero is None:
        return None if bias is None else new.add("neg", [bias])
    shift = new.add("mul", [new.add("sum_integers", [weight], axes=(1, 2, 3), keepdims=False), zero])
    return shift if bias is None else new.add("sub", [shift, bias])


def _are_of_filters(a: Centred, b: Centred) -> bool:
    """Tells whether the zero points of a convolution are one of all the images, and one of each filter or of all."""
    left = a.zero is None or a.zero.rank == 0
    return left and (b.zero is None or b.zero.rank == 0 or b.zero.shape[1:] == (ONE, ONE, ONE))


def _are_of_rows(a: Centred, b: Centred) -> bool:
    """Tells whether the zero points of a product are the same all along its reduction."""
    left = a.zero is None or a.zero.rank == 0 or a.zero.shape[-1] is ONE
    return left and (b.zero is None or b.zero.rank < 2 or b.zero.shape[-2] is ONE)


def _known(size: Expr) -> int | None:
    return int(size.value) if isinstance(size, Const) else None


def _has_rows_of_terms(q: Value) -> bool:
    """Tells whether the terms of each column of a right factor lie side by side, or are made to while compiling."""
    return is_known(q) or operand_of("transpose", q) is not None


def _less_zeros(new: Graph, x: _Factor, w: _Factor, product: Value, size: int) -> Value:
    """Returns the *product* of two factors, of *size* terms, less the contributions of their zero points."""
    sums = new.add("sum_integers", [w.q], axes=(-2,), keepdims=x.q.rank > 1)
    product = _less(new, product, x.zero, sums)
    if w.zero is None:
        return product
    of_rows = new.add("sum_integers", [x.q], axes=(-1,), keepdims=True)
    zeros = None if x.zero is None else new.add("mul", [x.zero, new.constant(np.asarray(size, np.int32))])
    return _less(new, product, w.zero, of_rows if zeros is None else new.add("sub", [of_rows, zeros]))


def _less(new: Graph, v: Value, zero: Value | None, sums: Value) -> Value:
    """Returns *v* less the product of a zero point and *sums*."""
    return v if zero is None else new.add("sub", [v, new.add("mul", [sums, zero])])
