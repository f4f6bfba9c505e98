"""Refuses code that this machine can't run, before any of it is made."""

from __future__ import annotations

from weft.graph import Graph, host_node
from weft.runtime.devices import APIS, INSTALL
from weft.support.errors import InputError, ToolchainError
from weft.targets import Target, can_run, needed_flags


def check_host_operators(graph: Graph, target: Target) -> Graph:
    """Returns *graph*; raises `InputError` where the host computes a part of it, and *target* has no runtime beside its code."""
    node = host_node(graph) if target.kind != "cpu" else None
    if node is not None:
        raise InputError(
            f"{node.source or node.op}: operators on strings are computed by the runtime, and {target.name} has none",
            hint="compile the part of the model that has no strings, or use --target cpu",
        )
    return graph


def needed_features(graph: Graph, target: Target) -> tuple[str, ...]:
    """Returns what the code of *graph* needs where it runs: of the processor (Linux's names), and of the runtime."""
    of_processor = () if target.isa.language else needed_flags(target)
    return of_processor if host_node(graph) is None else (*of_processor, "weft.strings")


def check_runs_here(target: Target, text: str, hint: str) -> None:
    """Raises an error if code for *target*, which the user called *text*, can't run on this machine."""
    if can_run(target):
        return
    if target.isa.language in APIS:
        raise ToolchainError(
            f"code for {text!r} runs here only where there is a device, and there is none", hint=INSTALL
        )
    if target.isa.language:
        raise ToolchainError(
            f"code for {text!r} runs here only where there is a C compiler, and there is none",
            hint=f"apt install gcc, or the like; or {hint}",
        )
    raise InputError(f"code for {text!r} does not run on this machine", hint=hint)
