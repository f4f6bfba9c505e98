"""What operators of the host, such as those on strings, ask of a target and of the runtime."""

from __future__ import annotations

from weft.graph import Graph, host_node
from weft.support.errors import InputError
from weft.targets import Target, needed_flags


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
