"""Refuses models with values that a device has no types or no room for, before any of their kernels is made."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from weft.graph import FusedGraph, Value
from weft.ir import Const
from weft.support.errors import InputError
from weft.targets import Target


def check_values(fused: FusedGraph, target: Target) -> None:
    """Raises `InputError` for a value of a type that *target* lacks, or of more bytes than one of its kernels reads or writes."""
    for v, source in _values(fused):
        where = f"{source}: " if source else ""
        if v.dtype.name in target.isa.missing_types:
            raise InputError(
                f"{where}{v.name or 'a value'} is of type {v.dtype}, which {target.name} does not compute with",
                hint=f'convert the model to float32, or compile it for a cpu target, or for "{target.name}+cpu"',
            )
        known = [int(n.value) for n in v.shape if isinstance(n, Const)]
        size, most = v.dtype.bytes * prod(known), _most(target, is_known=len(known) == len(v.shape))
        if most is not None and size > most:
            raise InputError(
                f"{where}{v.name or 'a value'} has {size} bytes, and a kernel of {target.name} takes at most {most} in a buffer",
                hint=f'use a smaller batch, or compile this model for a cpu target, or for "{target.name}+cpu"',
            )


def _most(target: Target, *, is_known: bool) -> int | None:
    """Returns the most bytes of a value that a kernel reads or writes, whose size is known, or is told by a call."""
    if target.grid is None:
        return None
    return target.most_bytes if is_known else target.grid.buffer_bytes


def _values(fused: FusedGraph) -> Iterator[tuple[Value, str]]:
    """Yields the values that kernels of the device read and write, each with the nodes of the user's model that it is for."""
    for f in fused.all_graphs:
        for g in [g for g in f.groups if not g.on_processor and not g.regions]:
            for v in (*g.inputs, *g.outputs):
                yield v, g.source
