"""Reductions, orders, and elements at indices."""

from __future__ import annotations

from typing import Any

import torch
from tests.frontends.torch.cases.tensors import INTS, ROWS, A, Case, X
from tests.frontends.torch.modules import numbers


def bags(table: torch.Tensor, i: torch.Tensor, ends: torch.Tensor, w: torch.Tensor) -> Any:
    """Bags of rows of all modes, and what the gradients of a table and of the factors of rows are made of."""
    whole = A._embedding_bag(table, i, ends, False, 2, False, None, True, 3)
    each, empty = torch.tensor([0, 0, 0, 2, 2]), torch.zeros(0, dtype=torch.int64)
    grad, sizes, twice = whole[0] + 1, torch.tensor([3, 0, 2]), torch.tensor([1, 4, 1, 4])
    return (
        whole[:3],
        *[
            torch.nn.functional.embedding_bag(i, table, ends[:3], mode=mode, padding_idx=-2)
            for mode in ("sum", "mean", "max")
        ],
        torch.nn.functional.embedding_bag(i, table, ends, mode="sum", per_sample_weights=w, include_last_offset=True),
        A._embedding_bag_forward_only(table, i, ends[:3], False, 1)[0],
        A.embedding_bag.default(table, i, ends[:3])[0],
        A._embedding_bag_backward(grad, i, ends[:3], empty, sizes, sizes, 5, False, 0, False, w, 3),
        A._embedding_bag_backward(grad, twice, ends[:3], empty, sizes, sizes, 5, True, 0, False, None),
        A._embedding_bag_dense_backward(grad, i, each, sizes, sizes, 5, False, 1, None),
        A._embedding_bag_dense_backward(grad, i, each, whole[2], whole[3].clamp(0), 5, False, 2, None),
        A._embedding_bag_per_sample_weights_backward(grad, table, i, ends[:3], each, 0, 3),
    )


CASES: dict[str, Case] = {
    "reductions": (
        lambda x: (
            x.sum(),
            x.sum((0, 2)),
            x.sum(-1, keepdim=True),
            x.mean(),
            x.mean(1),
            x.amax(1),
            x.amin((0, 1), keepdim=True),
        ),
        [ROWS],
    ),
    "chosen": (
        lambda x, n: (x.argmax(), x.argmax(1), x.argmax(-1, keepdim=True), n.any(1), n.cumsum(0), n.sum()),
        [ROWS, INTS],
    ),
    "indexed": (
        lambda x, i, j: (
            x[i],
            x[:, i],
            x[i, j],
            x[:, i, j],
            x[i, :, j],
            x[i[:, None], j],
            torch.gather(x, 2, j[None, None].expand(2, 3, 2)),
            x.masked_select(x[0] > 0),
            x[x > 0],
            (x[0, 0] > 0).nonzero(),
        ),
        [ROWS, torch.tensor([1, 0]), torch.tensor([1, 2])],
    ),
    "scattered": (
        lambda x, i, v: (
            x.scatter(1, i, v),
            x.scatter(1, i, 2.0),
            x.scatter_add(1, i, v),
            x.scatter_reduce(1, i, v, "amax"),
            x.scatter_reduce(1, i, v, "sum", include_self=False),
            A.index_put(x, [i[0]], v[:2, 0, None], True),
            A.index_put(x, [None, i[0]], v[:, :2]),
            A.index_put(x, [x > 0], torch.tensor(7.0)),
            A.index_put(x, [torch.ones(3, 4) > 0], torch.arange(12.0)),
            A.index_put(x.view(3, 2, 2), [i[:, 0] % 3, None, i[:, 1] % 2], v),
            A.index_put(x.view(3, 2, 1, 2), [None, i[0] % 2, None, i[0] % 2], v[:2, :1, None], True),
        ),
        [X, torch.tensor([[1, 0], [2, 3], [3, 0]]), numbers(3, 2, seed=5)],
    ),
    "as often as others say": (
        lambda x, n, w: (
            x.repeat_interleave(n, 0),
            x[:3].repeat_interleave(n[:3], 0, output_size=5),
            torch.repeat_interleave(n - n),
            torch.bincount(n),
            torch.bincount(n, w, minlength=2),
            torch.bincount(n, minlength=9),
        ),
        [numbers(4, 3), torch.tensor([2, 0, 3, 1]), numbers(4)],
    ),
    "in order": (
        lambda x: (
            torch.sort(x, 1),
            torch.sort(x, stable=True, dim=0, descending=True)[0],
            A.sort.default(x, 1, True)[1],
            x.topk(2),
            x.kthvalue(2)[0],
            x.median(),
            x.median(1),
            x.max(1),
            x.min(0, keepdim=True),
            x.argmin(),
            x.argmin(1),
        ),
        [X],
    ),
    "more reductions": (
        lambda x, n: (
            x.prod(),
            x.prod(1),
            x.max(),
            x.min(),
            n.all(),
            n.any(),
            n.all(1),
            A.any.dims(n, [0, 1]),
            A.all.dims(n, [0, 1]),
            x.cumprod(1),
            A.var(x),
            A.var.dim(x, [1]),
            A.var.correction(x, [1], correction=0),
            A.var_mean.correction(x, [1], correction=1),
            torch.ops.prims.var(x, [1], 1.0),
            x.sum(0)[0].sum(0),
        ),
        [X, INTS],
    ),
    "places in memory": (
        lambda x, i: (
            x.take(i),
            x.put(i, torch.arange(4.0)),
            A.put(x, i[:2], torch.arange(2.0), True),
            A.resize.default(x, [2, 3]),
            A.resize.default(x, [4, 5])[:2, :5],
            torch.nonzero_static(x > 0, size=3),
            torch.nonzero_static(x > 0, size=14, fill_value=7),
            torch.conj_physical(x),
        ),
        [X, torch.tensor([3, 0, -1, 5])],
    ),
    "masks of some dimensions": (
        lambda x, m, v: (
            A.index_put(x, [m], v),
            A.index_put(x, [m], v[:1], True),
            A.index_put(x, [None, torch.tensor([True, False, True, True])], torch.arange(3.0)),
        ),
        [X, torch.tensor([True, False, True]), numbers(2, 4, seed=6)],
    ),
    "parts replaced": (
        lambda x, v: (
            x.select_scatter(v[0], 0, 1),
            x.select_scatter(v[:, 0], 1, -1),
            x.slice_scatter(v[:2], 0, 1, 3),
            x.slice_scatter(v[:, :2], 1, 1, None, 2),
            x.slice_scatter(v[:, :1], 1, -1),
            x.slice_scatter(v, 1),
            x.slice_scatter(v[:0], 0, 2, 1),
        ),
        [numbers(3, 4), numbers(3, 4, seed=1)],
    ),
    "scattered and combined": (
        lambda x, i, v: (x.scatter(1, i, v, reduce="add"), x.scatter(1, i, 2.0, reduce="multiply")),
        [X, torch.tensor([[1, 0], [2, 3], [3, 0]]), numbers(3, 2, seed=5)],
    ),
    "places in order": (
        lambda x, rows: (
            torch.searchsorted(rows, x, sorter=rows.argsort(1)),
            torch.searchsorted(rows.sort(1)[0], x, right=True),
            torch.bucketize(x, rows[0].sort()[0]),
            torch.bucketize(x, rows[0].sort()[0], right=True, out_int32=True),
            x.logcumsumexp(1),
            (1000 * x).logcumsumexp(0),
            *torch.unique((3 * x).round(), return_inverse=True, return_counts=True),
        ),
        [X, numbers(3, 7, seed=8)],
    ),
    "bags of rows": (
        bags,
        [numbers(5, 4), torch.tensor([1, 3, 4, 3, 0]), torch.tensor([0, 3, 3, 5]), numbers(5, seed=9)],
    ),
    "histograms": (
        lambda x, w: (
            *torch.histogram(x, 5),
            *torch.histogram(x, 5, range=(-1.0, 1.0), weight=w, density=True),
            *torch.histogram(x, torch.tensor([-1.0, 0.0, 0.5, 2.0])),
            (found := torch.histogramdd(x, [2, 3, 1, 2]))[0],
            *found[1],
            torch.histogramdd(x[:, :2], [torch.tensor([-2.0, 0.0, 1.0]), torch.tensor([-1.0, 2.0])], density=True)[0],
            torch.histc(x, 4),
        ),
        [X, numbers(3, 4, seed=7).abs()],
    ),
}
