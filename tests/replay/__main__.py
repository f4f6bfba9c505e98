"""Compares what the compiler makes of many models with what is stored: what a refactoring is to leave unchanged.

    python -m tests.replay                           all models, for all machines
    python -m tests.replay resnet18 C6 --machine avx2
    python -m tests.replay --update                  stores what is made now

Ends with 1 where a kernel differs, is gone, or is new; shows the first program that differs, as it was and as it is.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor

import onnx
from tests.replay import store
from tests.replay.kernels import Stages, stages_of
from tests.replay.machines import MACHINES
from tests.replay.networks import NETWORKS
from tests.replay.operators import OPERATORS

MODELS: dict[str, Callable[[], onnx.ModelProto]] = {**NETWORKS, **OPERATORS}

SHOWN = 5
"""Differences that are shown in full."""


def made(model: str, machine: str) -> dict[str, Stages]:
    """Returns the kernels of *model* by `model/kernel`."""
    return {f"{model}/{k.name}": k for k in stages_of(MODELS[model](), MACHINES[machine])}


def compare(models: Sequence[str], machine: str, kernels: dict[str, Stages]) -> list[str]:
    """Returns a text for each kernel of *models* that is not as it is stored."""
    stored = {name: h for name, h in store.read_hashes(machine).items() if name.split("/")[0] in models}
    programs = store.read_programs(machine)
    texts = [f"{machine} {name}: it is gone" for name in stored if name not in kernels]
    for name, kernel in kernels.items():
        if name not in stored:
            texts.append(f"{machine} {name}: it is new\n{kernel.loops}")
        elif stored[name] != kernel.hashes():
            texts.append(f"{machine} {name}: {store.difference(stored[name], kernel, programs)}")
    return texts


def _others(machine: str, models: Sequence[str]) -> dict[str, store.Hashes]:
    """Returns the stored hashes of all models but *models*, and but those that there are no more."""
    stored = store.read_hashes(machine)
    return {name: h for name, h in stored.items() if (model := name.split("/")[0]) in MODELS and model not in models}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="model", choices=[[], *MODELS], help="all where none is given")
    parser.add_argument("--machine", choices=list(MACHINES), action="append", help="only for this one")
    parser.add_argument("--update", action="store_true", help="store what is made now")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args(arguments)
    models, machines = options.models or list(MODELS), options.machine or list(MACHINES)
    with ProcessPoolExecutor(options.jobs) as pool:
        pending = {(m, machine): pool.submit(made, m, machine) for machine in machines for m in models}
        found = {
            machine: {n: k for m in models for n, k in pending[m, machine].result().items()} for machine in machines
        }
    if options.update:
        for machine, kernels in found.items():
            store.write(machine, kernels, _others(machine, models))
        return 0
    texts = [text for machine, kernels in found.items() for text in compare(models, machine, kernels)]
    for text in texts[:SHOWN]:
        print(text, end="\n\n")
    print(f"{sum(map(len, found.values()))} kernels, {len(texts)} of them not as they are stored")
    return 1 if texts else 0


if __name__ == "__main__":
    sys.exit(main())
