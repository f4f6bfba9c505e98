"""Functions: those that a model brings with it, and operators that ONNX itself defines by others.

They are expanded where they are called, when the types of their inputs are known: ONNX makes some bodies to measure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx
import onnx.defs
import onnx.helper
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

from weft.frontends.onnx.file.tensors import ELEMENT_CODES
from weft.frontends.onnx.held import Absent, AnySequence, Held, LateOptional, NoTensor, tensors_of
from weft.frontends.onnx.model_node import DAMAGED, domain_of, source_of
from weft.frontends.onnx.registry import TABLE
from weft.frontends.string_ids import Strings
from weft.ir import Const
from weft.support.dtypes import DType
from weft.support.errors import ModelError

Key = tuple[str, str, str]


class Functions:
    """The functions that the nodes of a model can call."""

    def __init__(self, model: ModelProto) -> None:
        self.local: dict[Key, FunctionProto] = {(_domain(f), f.name, f.overload): f for f in model.functions}

    def is_known(self, node: NodeProto, opset: int) -> bool:
        """Tells whether *node* calls a function, rather than an operator of the table."""
        domain, name = domain_of(node), node.op_type
        if self.local and (domain, name, node.overload) in self.local:
            return True
        return (domain, name) not in TABLE and self._schema(node, opset) is not None

    def body(self, node: NodeProto, opset: int, inputs: Sequence[Held | None]) -> FunctionProto:
        """Returns the function that *node* calls, with the node's attributes filled in."""
        function = self.local.get((domain_of(node), node.op_type, node.overload))
        if function is not None:
            defaults = {a.name: a for a in function.attribute_proto}
        else:
            schema = self._schema(node, opset)
            assert schema is not None  # is_known() said so
            defaults = {name: a.default_value for name, a in schema.attributes.items() if a.default_value.name}
            function = _standard(schema, node, inputs)
        given = {**defaults, **{a.name: a for a in node.attribute}}
        return _filled(function, given)

    def output_types(
        self, node: NodeProto, opset: int, inputs: Sequence[Held | None]
    ) -> tuple[DType | None, ...] | None:
        """Returns the types of outputs that are those of inputs, of an operator that ONNX defines; None for other functions.

        A type parameter of inputs that are all left out is the first input's type, if the operator allows that.
        """
        schema = self._schema(node, opset)
        if schema is None or (domain_of(node), node.op_type, node.overload) in self.local:
            return None
        tensors = [v for v in inputs if not isinstance(v, NoTensor)]
        if len(tensors) < len(inputs):
            return None  # an operator on sequences computes nothing itself
        given = zip([i.type_str for i in schema.inputs], tensors, strict=False)
        bound = {name: v.dtype for name, v in given if v is not None}
        if tensors and tensors[0] is not None:
            usual = tensors[0].dtype
            free = {i.type_str for i in schema.inputs} - bound.keys()
            allowed = {t.type_param_str: t.allowed_type_strs for t in schema.type_constraints}
            known_as = f"tensor({TensorProto.DataType.Name(ELEMENT_CODES[usual]).lower()})"
            bound |= {name: usual for name in free if known_as in allowed.get(name, ())}
        return tuple([bound.get(o.type_str) for o in schema.outputs])

    def called(self, node: NodeProto, opset: int) -> FunctionProto | None:
        """Returns the function that *node* calls, as the model or ONNX has it; None for one made to measure for its inputs."""
        function = self.local.get((domain_of(node), node.op_type, node.overload))
        if function is not None:
            return function
        schema = self._schema(node, opset)
        return schema.function_body if schema is not None and _has(schema, "has_function") else None

    def nodes(self, node: NodeProto, opset: int) -> Iterator[NodeProto]:
        """Yields the nodes of the function that *node* calls, as far as they do not depend on its inputs."""
        function = self.called(node, opset)
        if function is not None:
            yield from function.node

    def _schema(self, node: NodeProto, opset: int) -> onnx.defs.OpSchema | None:
        """Returns ONNX's definition of the operator, if that is a function."""
        if not onnx.defs.has(node.op_type, opset, domain_of(node)):
            return None
        schema = onnx.defs.get_schema(node.op_type, opset, domain_of(node))
        return schema if _has(schema, "has_function") or _has(schema, "has_context_dependent_function") else None


def _has(schema: onnx.defs.OpSchema, kind: str) -> bool:
    return bool(getattr(schema, kind))


def _domain(function: FunctionProto) -> str:
    return "" if function.domain == "ai.onnx" else function.domain


def _standard(schema: onnx.defs.OpSchema, node: NodeProto, inputs: Sequence[Held | None]) -> FunctionProto:
    """Returns the body that ONNX gives an operator."""
    if _has(schema, "has_function"):
        return schema.function_body
    types = [_type_of(v).SerializeToString() for v in inputs]
    made = FunctionProto()
    try:
        made.ParseFromString(schema.get_context_dependent_function(node.SerializeToString(), types))  # type: ignore[attr-defined]
    except ValueError as error:  # ONNX has no body for such inputs
        raise ModelError(f"its inputs don't fit: {error}", where=source_of(node), hint=DAMAGED) from error
    return made


def _type_of(v: Held | None) -> TypeProto:
    if v is None or isinstance(v, Absent):
        return TypeProto()
    if isinstance(v, LateOptional):
        return onnx.helper.make_optional_type_proto(_type_of(v.held))
    if isinstance(v, AnySequence):
        element = onnx.helper.make_tensor_type_proto(ELEMENT_CODES[v.dtype], None)
        return onnx.helper.make_sequence_type_proto(element)
    (tensor,) = tensors_of(v)
    sizes = [int(s.value) if isinstance(s, Const) else None for s in tensor.shape]
    code = TensorProto.STRING if isinstance(v, Strings) else ELEMENT_CODES[tensor.dtype]
    return onnx.helper.make_tensor_type_proto(code, sizes)


def _filled(function: FunctionProto, given: Mapping[str, AttributeProto]) -> FunctionProto:
    """Returns a copy of *function* whose nodes have the caller's attributes where they refer to them."""
    made = FunctionProto()
    made.CopyFrom(function)
    for node in made.node:
        _fill(node, given)
    return made


def _fill(node: NodeProto, given: Mapping[str, AttributeProto]) -> None:
    kept: list[AttributeProto] = []
    for a in node.attribute:
        if a.ref_attr_name:
            if a.ref_attr_name not in given:
                continue
            name = a.name
            a.CopyFrom(given[a.ref_attr_name])
            a.name = name
        for inner in _graphs(a):
            for n in inner.node:
                _fill(n, given)
        kept.append(a)
    copies = [a.SerializeToString() for a in kept]
    del node.attribute[:]
    node.attribute.extend(AttributeProto.FromString(c) for c in copies)


def _graphs(a: AttributeProto) -> list[GraphProto]:
    return [a.g] if a.type == AttributeProto.GRAPH else list(a.graphs)
