#!/usr/bin/env python3
"""What a call through torch.compile costs where the module has little else to do: Weft, Inductor and eager PyTorch, in turns.

    ../.venv/bin/python torch_call_overhead.py [--rounds 31]

One thread: microseconds of processor time, medians of the rounds, and Weft's relative to the others. Inductor needs C++.
"""

import argparse
from time import process_time

import torch
from torch import nn
from torch_compile import Call, turns


class Sum(nn.Module):
    """The sum of two tensors."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + b


def perceptron(layers: int) -> nn.Module:
    """Layers of 16 units on rows of 16 numbers."""
    parts = [part for _ in range(layers) for part in (nn.Linear(16, 16), nn.ReLU())]
    return nn.Sequential(*parts).eval()


CASES = {
    "sum of 4": (Sum(), (torch.ones(4), torch.ones(4))),
    "perceptron of 2 layers": (perceptron(2), (torch.ones(1, 16),)),
    "perceptron of 16 layers": (perceptron(16), (torch.ones(1, 16),)),
}


def call_of(module: nn.Module, inputs: tuple[torch.Tensor, ...], backend: str | None) -> Call:
    """Return a call of a module, compiled unless *backend* is None."""
    torch._dynamo.reset()
    options = {"fallback": False} if backend == "weft" else None
    fast = module if backend is None else torch.compile(module, backend=backend, options=options, fullgraph=True)
    torch.testing.assert_close(fast(*inputs), module(*inputs), rtol=1e-4, atol=1e-5)
    return lambda: fast(*inputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"{'module':24} {'weft us':>8} {'inductor':>9} {'ratio':>6} {'eager':>8} {'ratio':>6}")
    with torch.no_grad():
        for name, (module, inputs) in CASES.items():
            ours, theirs, eager = (call_of(module, inputs, backend) for backend in ("weft", "inductor", None))
            ratio, ms, ms_theirs = turns([ours, theirs], given.rounds, process_time)
            beside_eager, _, ms_eager = turns([ours, eager], given.rounds, process_time)
            figures = f"{1e3 * ms:8.1f} {1e3 * ms_theirs:9.1f} {ratio:6.2f} {1e3 * ms_eager:8.1f} {beside_eager:6.2f}"
            print(f"{name:24} {figures}", flush=True)


if __name__ == "__main__":
    main()
