"""Refuses models with values that a device has no types or no room for, before any of their kernels is made."""

from __future__ import annotations

from collections.abc import Iterator

from weft.graph import FusedGraph, Value
from weft.ir import Const
from weft.support.errors import InputError
from weft.targets import Target


def check_values(fused: FusedGraph, target: Target) -> None:
    """Raises `InputError` for a value of a type that *target* lacks, or of more bytes than one of its kernels reads or writes."""
    most = None if target.grid is None else target.grid.buffer_bytes
    for v, source in _values(fused):
        where = f"{source}: " if source else ""
        if v.dtype.name in target.isa.missing_types:
            raise InputError(
                f"{where}{v.name or 'a value'} is of type {v.dtype}, which {target.name} does not compute with",
                hint="convert the model to float32, or compile it for a cpu target",
            )
        size = v.dtype.bytes
        for n in v.shape:
            size *= int(n.value) if isinstance(n, Const) else 1
        if most is not None and size > most:
            raise InputError(
                f"{where}{v.name or 'a value'} has {size} bytes, and a kernel of {target.name} takes at most {most} in a buffer",
                hint="use a smaller batch, or compile this model for a cpu target",
            )


def _values(fused: FusedGraph) -> Iterator[tuple[Value, str]]:
    """Yields the values in memory, each with the nodes of the user's model that it is for."""
    for f in fused.all_graphs:
        for g in f.groups:
            for v in (*g.inputs, *g.outputs):
                yield v, g.source
