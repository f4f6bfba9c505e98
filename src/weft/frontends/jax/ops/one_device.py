"""Collectives of a single device: it has the number 0, and gets back the values that it gives."""

from __future__ import annotations

from weft.frontends.jax.call import Call
from weft.frontends.jax.registry import translates
from weft.frontends.jax.text.attribute_values import Dense
from weft.frontends.jax.text.operations import tensor_type
from weft.graph.builder import Operand
from weft.support.dtypes import u32


@translates("partition_id", "replica_id")
def number_of_device(c: Call) -> Operand:
    """The number of the device."""
    return c.scalar(0, u32)


@translates("all_reduce", "all_gather", "all_to_all", "reduce_scatter", "collective_broadcast")
def exchanged_in_groups(c: Call) -> tuple[Operand, ...]:
    """Tensors of all devices in a group, added up or put together."""
    _check_shape(c, "replica_groups", (1, 1))
    return tuple(c.operands)


@translates("collective_permute")
def collective_permute(c: Call) -> Operand:
    """Tensors sent from device to device; zeros where nothing arrives."""
    x = c.operand(0)
    pairs = c.value("source_target_pairs")
    if isinstance(pairs, Dense) and pairs.type.startswith("tensor<0x"):
        return c.add("full", shape=x.shape, value=0, dtype=x.dtype)
    _check_shape(c, "source_target_pairs", (1, 2))
    return x


def _check_shape(c: Call, name: str, wanted: tuple[int, ...]) -> None:
    """Raises `ModelError` where an attribute names several devices."""
    found = c.value(name)
    type_ = tensor_type(found.type) if isinstance(found, Dense) else None
    if type_ is None or type_.shape != wanted:
        c.fail(f"its {name} are those of several devices", "lower the function for one device")
