"""Shapes, pieces, and tensors that are made of no others."""

from __future__ import annotations

import torch
from tests.frontends.torch.cases.tensors import INTS, ROWS, A, Case, F, X
from tests.frontends.torch.modules import numbers

CPU = torch.device("cpu")


def ones_as_told(n: torch.Tensor) -> torch.Tensor:
    """A tensor whose size is an element of another."""
    count = n.item()
    torch._check(count >= 1)
    torch._check(count < 9)
    return torch.ones(count)


def strided() -> torch.Tensor:
    return torch.ops.prims.empty_strided([2, 3], [1, 2], dtype=torch.float32, device=CPU, requires_grad=False)


CASES: dict[str, Case] = {
    "shapes": (
        lambda x: (
            A._unsafe_view(x, [6, 6]),
            x.view(3, -1),
            x.reshape(6, 6),
            x.flatten(1),
            x.flatten(),
            x.unflatten(2, (3, -1)),
            x[:, None],
            x.unsqueeze(-1),
        ),
        [ROWS],
    ),
    "orders": (
        lambda x: (x.permute(2, 0, 1), x.transpose(0, -1), x[0].t(), x.permute(1, 0, 2).contiguous(), x.mT),
        [ROWS],
    ),
    "squeezed": (lambda x: (x.squeeze(), x.squeeze(0), x.squeeze((0, 2)), x.squeeze(1)), [numbers(1, 3, 1, 4)]),
    "repeated": (lambda x: (x[:, :1].expand(3, 5), x.expand(2, -1, 4), x.repeat(2, 1, 3)), [X]),
    "joined": (lambda x, n: (torch.cat([x, x], 1), torch.cat([x, n]), torch.stack([x, x], -1)), [X[:2, :2], INTS]),
    "pieces": (
        lambda x: (
            x.split(4, 2),
            x.split([1, 2], 1),
            x.chunk(4, -1),
            x[:, 1:],
            x[..., ::2],
            x[:, -1],
            x[:, 0],
            x[:, -2:-1],
        ),
        [ROWS],
    ),
    "as it is": (lambda x: (x.clone() + 1, x.detach() * 2, F.dropout(x, training=False), x.to(torch.float64)), [X]),
    "converted": (
        lambda x, n: (
            A.to.dtype_layout(x, dtype=torch.float64),
            A.to.device(x, CPU, torch.float64),
            A.to.other(x * 9, n),
            (x * 9).type_as(n),
        ),
        [X, INTS],
    ),
    "rolled": (lambda x: (x.roll(2, 1), x.roll((1, -5), (0, 2)), x.roll(5), x.roll(3, 1), x[:, :0].roll(1, 1)), [ROWS]),
    "taken apart": (lambda x: (*x.unbind(1), *x.unbind(-1)), [ROWS]),
    "differences": (
        lambda x, n: (
            x.diff(),
            x.diff(n=2, dim=1),
            x.diff(dim=0, prepend=x[:1], append=n[:1]),
            (x > 0).diff(dim=-1),
            x.diff(n=0),
        ),
        [numbers(3, 4, 5), torch.ones(1, 4, 5, dtype=torch.float64)],
    ),
    "made": (
        lambda x: (
            torch.arange(4),
            torch.arange(1, 8, 3),
            torch.arange(2, 5, dtype=torch.float32),
            torch.zeros(2, 3),
            torch.ones(3),
            torch.full((2, 2), 7),
            torch.zeros_like(x),
            torch.ones_like(x),
            torch.full_like(x, 2.5),
            x + torch.tensor(3.0),
        ),
        [X],
    ),
    "triangles": (lambda x: (x.tril(), x.triu(1), x.tril(-1)), [ROWS]),
    "padded": (lambda x: (F.pad(x, (1, 2)), F.pad(x, (0, 1, 2, 0), value=3.0)), [ROWS]),
    "padded by elements": (
        lambda x: (F.pad(x, (1, 2), "reflect"), F.pad(x, (2, 1), "circular"), F.pad(x, (1, 1), "replicate")),
        [ROWS],
    ),
    "moved": (
        lambda x: (
            x.flip(0, 2),
            A.copy(x, x[:1]),
            torch.ops.prims.convert_element_type(x, torch.float64),
            x.as_strided((2, 2), (1, 4), 1),
            x[0].t().as_strided((2, 2), (1, 4)),
            x[1].t().as_strided((2, 2), (1, 4), x[1].storage_offset() + 1),
            x[1:].as_strided((2, 2), (4, 1)),
            x.contiguous(),
            x.narrow(1, 1, 2),
            x.narrow(-1, -3, 2),
            A.view_as(x, x.view(3, 12)),
            x[:1].expand_as(x),
            A.fill(x, 2),
            A.fill(x, x.sum()),
            A.zero(x),
            x.diagonal(),
            x.diagonal(-1, 2, 0),
            x.mT.diagonal(2, -1, 1),
        ),
        [ROWS],
    ),
    "spread along one another": (
        lambda x, y: (
            *A.broadcast_tensors([x, y[:, None, None], x[0, 0]]),
            *A.meshgrid([y, x[0, 0]]),
            *torch.meshgrid(x[0, 0], y, indexing="xy"),
            *torch.meshgrid(y, x[0, 0], x[0, 0, 0], indexing="ij"),
            *torch.meshgrid(x[0, 0], y, y, indexing="xy"),
        ),
        [ROWS, numbers(2)],
    ),
    "windows along dimensions": (
        lambda x: (
            x.unfold(2, 3, 1),
            x.unfold(-2, 2, 1).unfold(2, 2, 2),
            x.unfold(0, 1, 4),
            A.unfold_copy(x, 1, 3, 2),
            x.sum().unfold(0, 1, 1),
        ),
        [ROWS],
    ),
    "a size that is an element": (ones_as_told, [torch.tensor(3)]),
    "more made": (
        lambda x: (
            torch.arange(0.0, 2.0, 0.5),
            torch.arange(5, 0, -2),
            x.new_zeros(2),
            x.new_ones(2),
            x.new_full((2,), 3.0),
            x.new_empty(2).fill_(1.0),
            torch.empty(2).fill_(2.0),
            torch.empty_like(x).fill_(2.0),
            A.empty_permuted([2, 3], [0, 1]) * 0,
            torch.ops.prims.iota(3, start=1, step=2, dtype=torch.int64, device=CPU, requires_grad=False),
        ),
        [X],
    ),
    "strided memory": (
        lambda x: (
            torch.ones_like(torch.empty_strided((2, 3), (1, 2))) * x[0, 0],
            torch.zeros_like(strided()) + x[0, 0],
        ),
        [X],
    ),
}
