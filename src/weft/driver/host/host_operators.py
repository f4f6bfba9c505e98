"""The requirements of host operators, such as those on strings, on the target and the runtime."""

from __future__ import annotations

from weft.graph import Graph, host_nodes
from weft.support.errors import InputError
from weft.targets import Target, needed_flags


def check_host_operators(graph: Graph, target: Target) -> Graph:
    """Returns *graph*; raises `InputError` where the host computes a part of it, and *target* has no runtime beside its code.

    A processor beside a device has one.
    """
    node = next(host_nodes(graph), None) if target.kind != "cpu" and target.processor is None else None
    if node is not None:
        raise InputError(
            f"{node.source or node.op}: strings, and random numbers without a seed, are computed by the runtime, "
            f"and {target.name} has none",
            hint="compile the part of the model that has no strings, give random operators the attribute seed, "
            f'use --target cpu, or "{target.name}+cpu", where the host computes them',
        )
    return graph


def needed_features(graph: Graph, target: Target) -> tuple[str, ...]:
    """Returns the features that the code of *graph* needs where it runs: of the processor (Linux's names), and of the runtime."""
    of_processor = () if target.isa.language else needed_flags(target)
    return (*of_processor, *sorted({node.operator.on_host for node in host_nodes(graph)}))
