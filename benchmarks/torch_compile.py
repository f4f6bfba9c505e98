#!/usr/bin/env python3
"""torch.compile by Weft and by Inductor: the networks of the benchmark in one process, in turns; and how long compiling takes.

    python torch_compile.py [--threads 1] [--rounds 15] [--small] [--freeze | --prepack] [name ...]

A row has the ratio of the times of a call (Weft's to Inductor's, the median over rounds), that of compiling with empty caches,
and the largest difference of the results. With --freeze the weights are constants; with --prepack the forms of weights that
kernels want are kept beside them. One thread is timed by its processor time.
Run it with the interpreter that has Weft and PyTorch; Inductor needs a C++ compiler.
"""

import argparse
import math
import os
import tempfile
from collections.abc import Callable
from statistics import geometric_mean, median
from time import perf_counter, process_time

import torch
from inputs import make_inputs

from models import MODELS, NETWORKS, SMALL, Model, build

Call = Callable[[], object]


def compiled(name: str, model: Model, backend: str, options: dict[str, bool]) -> tuple[Call, float]:
    """Return a call of the network compiled by *backend*, and the seconds that the first one took."""
    module, arrays = build(name, model), make_inputs({"name": name, "inputs": model.inputs})
    inputs = [torch.from_numpy(arrays[spec["name"]]) for spec in model.inputs]
    torch._dynamo.reset()
    fast = torch.compile(module, backend=backend, options=options, fullgraph=True)

    def call() -> object:
        return fast(*inputs)

    begin = perf_counter()
    call()
    return call, perf_counter() - begin


def flat(made: object) -> list[torch.Tensor]:
    return [made] if isinstance(made, torch.Tensor) else list(made)  # type: ignore[call-overload]


def difference(made: object, wanted: object) -> float:
    """Return the largest difference, of the largest element."""
    pairs = zip(flat(made), flat(wanted), strict=True)
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


def turns(calls: list[Call], rounds: int, clock: Callable[[], float]) -> list[float]:
    """Return the median ratio of the first call's time to the second's, and the median milliseconds of each."""
    number = [1, 1]
    for k, call in enumerate(calls):
        begin = perf_counter()
        call()
        number[k] = max(1, math.ceil(5e-3 / (perf_counter() - begin)))
    found = []
    for n in range(rounds):
        taken = [0.0, 0.0]
        for k in (n % 2, 1 - n % 2):
            begin = clock()
            for _ in range(number[k]):
                calls[k]()
            taken[k] = (clock() - begin) / number[k]
        found.append(taken)
    return [median(a / b for a, b in found), *(1e3 * median(t[k] for t in found) for k in (0, 1))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--small", action="store_true", help="the networks made small")
    weights = parser.add_mutually_exclusive_group()
    weights.add_argument("--freeze", action="store_true", help="weights are constants")
    weights.add_argument("--prepack", action="store_true", help="packed forms of weights are kept beside them")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="torch_compile") as scratch:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(scratch, "inductor")
        os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
        os.environ["WEFT_CACHE_DIR"] = os.path.join(scratch, "weft")
        compare(given)


def compare(given: argparse.Namespace) -> None:
    """Print a row for each network, and the geometric means."""
    torch.set_num_threads(given.threads)
    torch.set_grad_enabled(False)
    clock, models = process_time if given.threads == 1 else perf_counter, SMALL if given.small else MODELS
    options = {
        "weft": {"freeze": given.freeze, "prepack": given.prepack, "fallback": False},
        "inductor": {"freezing": given.freeze},
    }
    ratios, compiling = [], []
    print(f"{'network':18} {'ratio':>7} {'weft ms':>9} {'inductor':>9} {'compiling':>10} {'weft s':>7} {'inductor':>9}")
    for name in given.names or NETWORKS:
        (ours, cold), (theirs, cold_theirs) = (
            compiled(name, models[name], backend, options[backend]) for backend in options
        )
        worst = difference(ours(), theirs())
        ratio, ms, ms_theirs = turns([ours, theirs], given.rounds, clock)
        ratios.append(ratio)
        compiling.append(cold / cold_theirs)
        times = f"{name:18} {ratio:7.3f} {ms:9.3f} {ms_theirs:9.3f}"
        print(f"{times} {compiling[-1]:10.3f} {cold:7.2f} {cold_theirs:9.2f}  off by {worst:.1e}", flush=True)
    print(f"{'geometric mean':18} {geometric_mean(ratios):7.3f} {'':19} {geometric_mean(compiling):10.3f}")


if __name__ == "__main__":
    main()
