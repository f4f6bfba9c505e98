"""`weft targets`: what can be compiled for, and what can be run here."""

from __future__ import annotations

from weft.cli.console import Json, print_json, print_table
from weft.targets.cpu import LEVELS, can_run, cpu, host, host_flags, needed_flags
from weft.targets.target import Target


def targets(as_json: Json = False) -> None:
    """List what can be compiled for, what of it runs here, and what is missing for the rest.

    Examples:

        weft targets

        weft compile model.onnx -o model.weft --target "cpu -mattr=avx2"
    """
    rows = [("cpu", host()), *((f"cpu -mattr={name}", cpu(name)) for name in LEVELS)]
    if as_json:
        print_json([_facts(name, target) for name, target in rows])
        return
    cells = []
    for name, target in rows:
        note = f"this machine: {target.cores} cores" if name == "cpu" else _missing(target)
        cells.append([name, target.cpu, f"{target.vector_bits} bits", "yes" if can_run(target) else "no", note])
    print_table(("target", "processor", "vectors", "runs here", ""), cells, elastic="")


def _facts(name: str, target: Target) -> dict[str, object]:
    return {
        "target": name, "cpu": target.cpu, "vector_bits": target.vector_bits, "cores": target.cores,
        "runs_here": can_run(target), "missing": sorted(set(needed_flags(target)) - host_flags()),
    }  # fmt: skip


def _missing(target: Target) -> str:
    lacking = sorted(set(needed_flags(target)) - host_flags())
    return f"this processor lacks {', '.join(lacking)}" if lacking else ""
