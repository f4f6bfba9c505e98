"""Reading a node of an ONNX model: its name in messages, its operator's domain, and its attributes, checked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import onnx
import onnx.defs
import onnx.helper
from onnx import AttributeProto, NodeProto, TensorProto

from weft.frontends.onnx.file.tensors import element_type, to_array
from weft.frontends.onnx.string_pool import is_string_tensor, string_array
from weft.support.errors import ModelError
from weft.support.text import printable_line

DAMAGED: Final = "the model is damaged, or whatever wrote it is wrong: export or download it again"


def source_of(node: NodeProto) -> str:
    """Names a node for messages: its operator, and its name or else its first output."""
    return printable_line(f"{node.op_type} {node.name or next((o for o in node.output if o), '?')}")


def domain_of(node: NodeProto) -> str:
    """Returns the domain of a node's operator, the default one as the empty string."""
    return "" if node.domain == "ai.onnx" else node.domain


def attributes_of(node: NodeProto, opset: int, where: str) -> dict[str, Any]:
    """Returns a node's attributes by name, as Python values: text decoded, tensors as arrays, graphs as they are.

    Raises `ModelError` naming *where* for one without a type or of another type than ONNX's definition of the operator in
    operator set *opset* has, and where one is missing that the operator needs.
    """
    kinds, needed = _declared(node.op_type, opset, domain_of(node))
    for a in node.attribute:
        _check_type(node, a, kinds, where)
    found = {a.name: _value(a, where) for a in node.attribute}
    missing = [name for name in needed if name not in found]
    if missing:
        raise ModelError(f"its attribute {missing[0]!r} is missing", where=where, hint=DAMAGED)
    return found


def check_count(node: NodeProto, opset: int, where: str) -> None:
    """Raises `ModelError` for a node of more or fewer inputs or outputs than ONNX's definition of the operator has."""
    for what, count, (least, most) in zip(
        ("input", "output"),
        (len(node.input), len(node.output)),
        _counts(node.op_type, opset, domain_of(node)),
        strict=False,  # there are no limits where ONNX has no definition
    ):
        if count < least:
            raise ModelError(f"its {what} {count} is missing", where=where, hint=DAMAGED)
        if count > most:
            raise ModelError(
                f"it has {count} {what}s, and {node.op_type} has {most or 'none'}{' at most' if most else ''}",
                where=where,
                hint=DAMAGED,
            )


@lru_cache(maxsize=1024)
def _counts(operator: str, opset: int, domain: str) -> tuple[tuple[int, int], ...]:
    """Returns how many inputs an operator has at least and at most, and how many outputs; nothing where ONNX lacks it."""
    if not onnx.defs.has(operator, opset, domain):
        return ()
    schema = onnx.defs.get_schema(operator, opset, domain)
    return (schema.min_input, schema.max_input), (schema.min_output, schema.max_output)


@lru_cache(maxsize=1024)
def _declared(operator: str, opset: int, domain: str) -> tuple[Mapping[str, int], tuple[str, ...]]:
    """Returns the types of an operator's attributes as ONNX has them, and which it can't be without; none where ONNX lacks it.

    Attributes of later operator sets are among them: models use these with their later meaning.
    """
    if not onnx.defs.has(operator, domain):
        return {}, ()
    newest = onnx.defs.get_schema(operator, domain)
    if not onnx.defs.has(operator, opset, domain):
        return _types(newest), ()
    stated = onnx.defs.get_schema(operator, opset, domain)
    return _types(newest) | _types(stated), tuple([name for name, a in stated.attributes.items() if a.required])


def _types(schema: onnx.defs.OpSchema) -> dict[str, int]:
    number = AttributeProto.AttributeType.Value
    return {name: number(a.type.name) for name, a in schema.attributes.items()}  # type: ignore[attr-defined]


def _check_type(node: NodeProto, a: AttributeProto, kinds: Mapping[str, int], where: str) -> None:
    if a.ref_attr_name:
        raise ModelError(
            f"its attribute {a.name!r} stands for {a.ref_attr_name!r} of a function, but it is in none",
            where=where,
            hint=DAMAGED,
        )
    wanted = kinds.get(a.name, a.type)
    if a.type == AttributeProto.UNDEFINED or a.type != wanted:
        told = (
            "does not say of what type it is" if a.type == AttributeProto.UNDEFINED else f"is of type {_kind(a.type)}"
        )
        more = f"; {node.op_type} takes {_kind(wanted)}" if a.name in kinds else ""
        raise ModelError(f"its attribute {a.name!r} {told}{more}", where=where, hint=DAMAGED)


def _kind(number: int) -> str:
    return str(AttributeProto.AttributeType.Name(number))


def _value(a: AttributeProto, where: str) -> Any:
    value = onnx.helper.get_attribute_value(a)
    if isinstance(value, TensorProto):
        if is_string_tensor(value):
            return string_array(value)
        element_type(value.data_type, where)
        return to_array(value)
    try:
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, list):
            return [v.decode() if isinstance(v, bytes) else v for v in value]
    except UnicodeDecodeError:
        raise ModelError(f"its attribute {a.name!r} is not text in UTF-8", where=where, hint=DAMAGED) from None
    return value
