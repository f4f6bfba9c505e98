"""`weft targets`: the targets that can be compiled for, and those that run here."""

from __future__ import annotations

from weft.cli.console import Json, print_json, print_table
from weft.runtime.devices import APIS, device_names, install_hint, why_missing
from weft.support.text import printable_line
from weft.targets import PRESETS, Target, can_run, machine_name, missing_flags


def targets(as_json: Json = False) -> None:
    """List the compilation targets, those that run here, and what the others lack.

    Examples:

        weft targets

        weft compile model.onnx -o model.weft --target "cpu -mattr=avx2"

    A device and the host's processor share a model, so that each runs the nodes that suit it, with --target cuda+cpu.
    """
    rows = [(name, preset()) for name, preset in PRESETS.items()]
    if as_json:
        print_json([_facts(name, target) for name, target in rows])
        return
    cells = []
    for name, target in rows:
        note = f"this machine: {target.cores} cores" if name == "cpu" else _device(target) or _missing(target)
        processor = target.isa.cpu or f"any, in {target.isa.language.upper()}"
        runs = "yes" if can_run(target) else "no"
        cells.append([name, processor, f"{target.isa.vector_bits} bits", runs, note])
    print_table(("target", "processor", "vectors", "runs here", ""), cells, elastic="")


def _facts(name: str, target: Target) -> dict[str, object]:
    return {
        "target": name,
        "cpu": target.isa.cpu,
        "vector_bits": target.isa.vector_bits,
        "cores": target.cores,
        "runs_here": can_run(target),
        "missing": _lacking(target),
    }


def _device(target: Target) -> str:
    """Returns the name of the device that runs kernels for *target*; nothing where there is none."""
    names = device_names(target.isa.language)
    return f"this machine: {printable_line(names[0])}" if names else ""


def _missing(target: Target) -> str:
    if target.isa.language in APIS:
        return f"{why_missing(target.isa.language)}: {install_hint(target.isa.language)}"
    if target.isa.language:
        return "" if can_run(target) else "there is no C compiler, cc"
    if target.isa.machine != machine_name():
        return f"this machine is {machine_name()}"
    lacking = missing_flags(target)
    return f"this processor lacks {', '.join(lacking)}" if lacking else ""


def _lacking(target: Target) -> list[str]:
    if target.isa.language:
        needed = "device" if target.isa.language in APIS else "cc"
        return [] if can_run(target) else [needed]
    return missing_flags(target) if target.isa.machine == machine_name() else [target.isa.machine]
