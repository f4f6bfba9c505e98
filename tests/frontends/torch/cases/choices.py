"""Reductions, orders, and elements at indices."""

from __future__ import annotations

import torch
from tests.frontends.torch.cases.tensors import INTS, ROWS, A, Case, X
from tests.frontends.torch.modules import numbers

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
        ),
        [X, torch.tensor([[1, 0], [2, 3], [3, 0]]), numbers(3, 2, seed=5)],
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
}
