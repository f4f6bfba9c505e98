"""A module without complex numbers: each is two real values, before anything is imported.

    %1 = add %0, %0 : tensor<3xcomplex<f32>>            %1 real = add %0 real, %0 real : tensor<3xf32>
                                                        %1 imaginary = add %0 imaginary, %0 imaginary : tensor<3xf32>
    %2 = abs %1 : (tensor<3xcomplex<f32>>) -> ...       %2 = complex abs %1 real, %1 imaginary : (tensor<3xf32>, ...

Calls, loops and branches carry both. Operations that move elements, or are linear in them, are done to either part; products are
four. Other operations have a name of their own, and both parts of each operand. Arguments and results of the program are real
tensors [..., 2].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from weft.frontends.jax.text.attribute_values import Dense
from weft.frontends.jax.text.operations import Argument, Function, Module, Operation, Region, tensor_type
from weft.support.errors import ModelError

PARTS: Final = ("real", "imaginary")
TAKEN_APART: Final = "stablehlo.complex taken_apart"
JOINED: Final = "stablehlo.complex joined"
_RETURNING: Final = "stablehlo.optimization_barrier"
"""An operation that returns its operands."""

_CARRYING: Final = frozenset(("call", "composite", "while", "if", "case", "return", "optimization_barrier"))
_PART_BY_PART: Final = frozenset(
    (
        *("add", "subtract", "negate", "slice", "pad", "gather", "select", "constant", "reverse", "concatenate"),
        *("reshape", "dynamic_reshape", "transpose", "broadcast", "broadcast_in_dim", "dynamic_broadcast_in_dim"),
        *("dynamic_slice", "dynamic_update_slice"),
    )
)
_OF_SUMS: Final = frozenset(("reduce", "reduce_window", "scatter"))
"""Operations that are linear where their region is a sum, or, of a scatter, the update."""
_ALIASES: Final = frozenset(("complex", "real", "imag"))
_BILINEAR: Final = frozenset(("multiply", "dot_general", "convolution"))
_COUNTS: Final = {"complex": 2, "real": 1, "imag": 1, "multiply": 2, "dot_general": 2, "convolution": 2}
"""Operands of operations that are not left to a translation."""
_OPENS: Final = "complex<"


def without_complex(module: Module) -> Module:
    """Returns the module with pairs for complex values; the same one where it has none."""
    if not any(_has_complex(f.body, f.arguments) for f in module.functions.values()):
        return module
    main = module.functions.get("main") or next(iter(module.functions.values()))
    return replace(module, functions={n: _function(f, is_main=f is main) for n, f in module.functions.items()})


def _has_complex(region: Region, arguments: Sequence[Argument]) -> bool:
    types = [a.type for a in arguments]
    for o in region.operations:
        types += [*o.operand_types, *o.result_types, _type_of_constant(o)]
        if any(_has_complex(r, ()) for r in o.regions):
            return True
    return any(_OPENS in t for t in types)


def _type_of_constant(o: Operation) -> str:
    value = o.attributes.get("value")
    return value.type if isinstance(value, Dense) else ""


def _names(name: str) -> list[str]:
    return [f"{name} {p}" for p in PARTS]


def _real(type_: str) -> str:
    return type_.replace(_OPENS, "", 1).replace(">", "", 1) if _OPENS in type_ else type_


def _function(f: Function, *, is_main: bool) -> Function:
    """Returns a function whose arguments and results are real."""
    known, head = set[str](), list[Operation]()
    arguments = list[Argument]()
    for a in f.arguments:
        if _OPENS not in a.type:
            arguments.append(a)
            continue
        known.add(a.name)
        if is_main:
            arguments.append(replace(a, type=a.type.replace(_OPENS, "2x", 1).replace(">", "", 1)))
            head.append(Operation(TAKEN_APART, 0, _names(a.name), [a.name], location=a.location))
        else:
            arguments += [replace(a, name=n, type=_real(a.type)) for n in _names(a.name)]
    made = [*head, *_operations(f.body.operations, known)]
    if is_main:
        made = _with_joined_results(made, f.body.operations[-1], known)
    return Function(f.name, arguments, f.results, Region([a.name for a in arguments], made))


def _with_joined_results(made: list[Operation], last: Operation, known: set[str]) -> list[Operation]:
    """Returns the operations of the program, of which the *last* one returns tensors [..., 2] for complex ones."""
    given = list[str]()
    joins = list[Operation]()
    for k, name in enumerate(last.operands):
        given.append(f"%{k} joined" if name in known else name)
        if name in known:
            joins.append(Operation(JOINED, last.line, [given[-1]], _names(name), location=last.location))
    return [*made[:-1], *joins, replace(last, operands=given)]


def _operations(operations: Iterable[Operation], known: set[str]) -> list[Operation]:
    """Returns operations on real values; *known* are the complex ones, to which theirs are added."""
    made: list[Operation] = []
    for o in operations:
        made += _apart(o, known)
        types = o.result_types or [_type_of_constant(o)]
        known.update(n for n, t in zip(o.results, types, strict=False) if _OPENS in t)
    return made


def _apart(o: Operation, known: set[str]) -> list[Operation]:
    key = o.name.rpartition(".")[2]
    if key in _COUNTS and (len(o.operands), len(o.results)) != (_COUNTS[key], 1):
        hint = "lower the function again"
        raise ModelError(f"it has {len(o.operands)} operands", where=f"{key} (line {o.line})", hint=hint)
    if key in _CARRYING or not o.results or not _touches_complex(o, known):
        regions = [_region(o, r, known) for r in o.regions]
        return [_carrying(replace(o, regions=regions), known)]
    if key in _ALIASES:
        return [_alias(o, key)]
    if key in _PART_BY_PART or (key in _OF_SUMS and _is_sum(o)):
        return [_part(o, k, [k] * len(o.operands), known, _names(o.results[0])[k]) for k in (0, 1)]
    if key in _BILINEAR and all(n in known for n in o.operands):
        return _product(o, known)
    return [replace(_carrying(o, known), name=f"stablehlo.complex {key}")]


def _touches_complex(o: Operation, known: set[str]) -> bool:
    """Tells whether an operation has a complex operand or result."""
    types = [*o.result_types, _type_of_constant(o)]
    return any(n in known for n in o.operands) or any(_OPENS in t for t in types)


def _region(o: Operation, r: Region, known: set[str]) -> Region:
    """Returns a region of an operation; the arguments of a loop's are as its operands."""
    inside, arguments = set(known), list[str]()
    is_loop = o.name.endswith(".while")
    for k, name in enumerate(r.arguments):
        is_pair = is_loop and k < len(o.operands) and o.operands[k] in known
        arguments += _names(name) if is_pair else [name]
        (inside.add if is_pair else inside.discard)(name)
    return Region(arguments, _operations(r.operations, inside))


def _carrying(o: Operation, known: set[str]) -> Operation:
    """Returns an operation with both parts of each complex value."""
    results = list[str]()
    for k, name in enumerate(o.results):
        type_ = o.result_types[k] if k < len(o.result_types) else ""
        results += _names(name) if _OPENS in type_ else [name]
    operands = [n for name in o.operands for n in (_names(name) if name in known else [name])]
    return replace(
        o,
        results=results,
        operands=operands,
        operand_types=_each_twice(o.operand_types),
        result_types=_each_twice(o.result_types),
    )


def _each_twice(types: Sequence[str]) -> list[str]:
    return [_real(t) for t in types for _ in range(2 if _OPENS in t else 1)]


def _alias(o: Operation, key: str) -> Operation:
    """Returns an operation that makes a pair of two values, or has one of a pair, as one that returns its operands."""
    results = _names(o.results[0]) if key == "complex" else o.results
    operands = o.operands if key == "complex" else [_names(o.operands[0])[key == "imag"]]
    return Operation(_RETURNING, o.line, list(results), list(operands), location=o.location)


def _part(o: Operation, k: int, parts: Sequence[int], known: set[str], result: str) -> Operation:
    """Returns an operation on part *parts[i]* of each operand *i*; *k* is that of a constant."""
    operands = [_names(n)[p] if n in known else n for n, p in zip(o.operands, parts, strict=True)]
    attributes = dict(o.attributes)
    if isinstance(attributes.get("value"), Dense):
        attributes["value"] = _part_of_constant(attributes["value"], k)
    types = [_real(t) for t in o.operand_types], [_real(t) for t in o.result_types]
    return replace(
        o, results=[result], operands=operands, attributes=attributes, operand_types=types[0], result_types=types[1]
    )


def _product(o: Operation, known: set[str]) -> list[Operation]:
    """Returns the four products of the parts, and the difference and the sum that are those of the result."""
    name = o.results[0]
    made = [_part(o, 0, (a, b), known, f"{name} {a}{b}") for a in (0, 1) for b in (0, 1)]
    types = [_real(t) for t in o.result_types]
    for op, left, right, result in (("subtract", "00", "11", 0), ("add", "01", "10", 1)):
        operands = [f"{name} {left}", f"{name} {right}"]
        made.append(
            Operation(
                f"stablehlo.{op}",
                o.line,
                [_names(name)[result]],
                operands,
                operand_types=types * 2,
                result_types=types,
                location=o.location,
            )
        )
    return made


def _is_sum(o: Operation) -> bool:
    """Tells whether the region of an operation adds its two arguments, or is the second one."""
    if "applies" in o.attributes:
        return str(o.attributes["applies"]).endswith(".add")
    if len(o.regions) != 1 or len(o.regions[0].arguments) != 2:
        return False
    *before, last = o.regions[0].operations
    arguments = o.regions[0].arguments
    if not before:
        return o.name.endswith(".scatter") and last.operands == arguments[1:]
    return [b.name for b in before] == ["stablehlo.add"] and sorted(before[0].operands) == sorted(arguments)


def _part_of_constant(value: Dense, k: int) -> Dense:
    """Returns the real or the imaginary parts of a constant."""
    found = tensor_type(value.type)
    elements: Any = value.elements
    if isinstance(elements, str) and elements.startswith("0x") and found is not None:
        word = np.dtype(np.float64 if found.element == "complex<f64>" else np.float32)
        try:
            flat = np.frombuffer(bytes.fromhex(elements[2:]), word)
        except ValueError:  # it is told where the constant is made
            return value
        elements = f"0x{flat[k::2].tobytes().hex()}"
    elif isinstance(elements, list):
        elements = _leaves(elements, k)
    return replace(value, elements=elements, type=_real(value.type))


def _leaves(elements: Any, k: int) -> Any:
    """Returns nested lists with element *k* of each pair that is innermost."""
    if isinstance(elements, list) and len(elements) == 2 and not any(isinstance(v, list) for v in elements):
        return elements[k]
    return [_leaves(v, k) for v in elements] if isinstance(elements, list) else elements
