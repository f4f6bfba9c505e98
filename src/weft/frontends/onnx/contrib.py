"""Operators of ONNX Runtime's own domain, `com.microsoft`: a node's inputs and attributes are declared beside its translation.

The package onnx has no definitions of these operators, so they are checked here, against ONNX Runtime's ContribOperators.md:

    @contrib("QLinearLeakyRelu", inputs=(4, 5), attributes={"alpha": float})
    def qlinear_leaky_relu(c: Call) -> Results: ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from weft.frontends.onnx.call import Call, HeldResults
from weft.frontends.onnx.model_node import DAMAGED
from weft.frontends.onnx.registry import HeldTranslation, translates

MICROSOFT: Final = "com.microsoft"

WINDOW: Final[dict[str, type]] = {**dict.fromkeys(("kernel_shape", "pads", "strides"), list), "auto_pad": str}
"""The attributes of operators over windows."""

CONVOLUTION: Final[dict[str, type]] = {**WINDOW, "dilations": list, "group": int}
"""The attributes of convolutions."""

_WITHOUT: Final = "export the model without it, or as ONNX's standard operators"


def contrib(
    name: str,
    *,
    inputs: tuple[int, int | None],
    attributes: Mapping[str, type] | None = None,
    needed: Sequence[str] = (),
    only: Mapping[str, int | float | str] | None = None,
    without: Mapping[int, str] | None = None,
    limits: str = "",
    domain: str = MICROSOFT,
    holds: bool = False,
) -> Callable[[HeldTranslation], HeldTranslation]:
    """Enters the decorated function as the translation of ONNX Runtime's operator *name*.

    A node has at least and at most so many *inputs* (any number for None). It may have *attributes* of the types given, must
    have those *needed*, and may have those in *only* with no other value than their default there. Inputs in *without*, by
    index and name, are refused. With *holds* it takes, or makes, strings, sequences and optional values.
    """
    types = {**(attributes or {}), **{k: type(v) for k, v in (only or {}).items()}}

    def enter(translate: HeldTranslation) -> HeldTranslation:
        def checked(c: Call) -> HeldResults:
            _check_inputs(c, inputs, without or {})
            _check_attributes(c, types, needed, only or {})
            return translate(c)

        checked.__module__ = translate.__module__  # the family that the table of operators lists it in
        translates(name, limits=limits, domain=domain, holds=holds)(checked)
        return translate

    return enter


def _check_inputs(c: Call, count: tuple[int, int | None], without: Mapping[int, str]) -> None:
    """Raises `ModelError` for too few or too many inputs, and for one that is not supported."""
    least, most = count
    given = len(c.inputs)
    if given < least:
        c.fail(f"its input {given} is missing", DAMAGED)
    if most is not None and given > most:
        c.fail(f"it has {given} inputs, and {c.node.op_type} has {most} at most", DAMAGED)
    for i, name in without.items():
        if c.has(i):
            c.fail(f"its input {i} ({name}) is not supported", _WITHOUT)


def _check_attributes(
    c: Call, types: Mapping[str, type], needed: Sequence[str], only: Mapping[str, int | float | str]
) -> None:
    """Raises `ModelError` for an attribute that the operator lacks, of a wrong type or unsupported value, or that is missing."""
    for name, value in c.attributes.items():
        if name not in types:
            c.fail(f"{c.node.op_type} has no attribute {name!r}", f"its attributes are: {', '.join(types) or 'none'}")
        if not isinstance(value, types[name]):
            c.fail(f"its attribute {name!r} is {value!r}, not of type {types[name].__name__}", DAMAGED)
        if name in only and value != only[name]:
            c.fail(f"its attribute {name!r} is {value!r}; only {only[name]!r} is supported", _WITHOUT)
    for name in needed:
        if name not in c.attributes:
            c.fail(f"its attribute {name!r} is missing", DAMAGED)
