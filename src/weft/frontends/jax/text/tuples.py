"""A module without tuples: their elements are passed instead, before anything is imported.

%2 = tuple %0, %1 : tuple<tensor<3xf32>, tensor<f32>>
%3 = call @f(%2) : (tuple<...>) -> tuple<...>            %3 .0, %3 .1 = call @f(%0, %1) : (tensor<3xf32>, ...
%4 = get_tuple_element %3[1] : (tuple<...>) -> ...       %4 is %3 .1
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from weft.frontends.jax.text.operations import Argument, Function, Module, Operation, Region
from weft.support.errors import ModelError

Tree: TypeAlias = "str | list[Tree]"
"""A value: the name of a tensor, or the values in a tuple. A type is the same, of texts."""

_OPENS: Final = "tuple<"
_MAKES: Final = "tuple"
_TAKES: Final = "get_tuple_element"
_LOOP: Final = "while"
_AGAIN: Final = "lower the function again"


def without_tuples(module: Module) -> Module:
    """Returns the module with the elements of tuples for these; the same one where it has none.

    Raises `ModelError` for an element that a tuple does not have.
    """
    if not any(_has_tuples(f.body, f.arguments) for f in module.functions.values()):
        return module
    return replace(module, functions={n: _function(f) for n, f in module.functions.items()})


def _has_tuples(region: Region, arguments: Sequence[Argument]) -> bool:
    if any(a.type.startswith(_OPENS) for a in arguments):
        return True
    return any(
        _key(o) in (_MAKES, _TAKES)
        or any(t.startswith(_OPENS) for t in (*o.operand_types, *o.result_types))
        or any(_has_tuples(r, ()) for r in o.regions)
        for o in region.operations
    )


def _key(o: Operation) -> str:
    return o.name.rpartition(".")[2]


def _function(f: Function) -> Function:
    known: dict[str, Tree] = {}
    arguments: list[Argument] = []
    for a in f.arguments:
        names, types = _named(a.name, a.type, known), _leaves([_parts(a.type)])
        arguments += [replace(a, name=n, type=t) for n, t in zip(names, types, strict=True)]
    made = _operations(f.body.operations, known)
    same = len(made[-1].operands) == len(f.results)
    return Function(f.name, arguments, f.results if same else (), Region([a.name for a in arguments], made))


def _operations(operations: Iterable[Operation], known: dict[str, Tree]) -> list[Operation]:
    """Returns operations on elements; *known* are the values that others stand for, to which theirs are added."""
    made: list[Operation] = []
    for o in operations:
        given = [known.get(n, n) for n in o.operands]
        if _key(o) == _MAKES and len(o.results) == 1:
            known[o.results[0]] = given
        elif _key(o) == _TAKES and len(o.results) == 1:
            known[o.results[0]] = _element(o, given)
        else:
            made.append(_flat(o, given, known))
    return made


def _element(o: Operation, given: Sequence[Tree]) -> Tree:
    """Returns the element that an operation takes of a tuple."""
    at: Any = o.attributes.get("index", o.attributes.get("ranges"))
    at = at[0] if isinstance(at, list) and at else at
    values = given[0] if len(given) == 1 else ""
    if not isinstance(at, int) or not isinstance(values, list) or not 0 <= at < len(values):
        raise ModelError(f"it takes element {at!r} of {o.operands}", where=f"{o.name} (line {o.line})", hint=_AGAIN)
    return values[at]


def _flat(o: Operation, given: Sequence[Tree], known: dict[str, Tree]) -> Operation:
    """Returns an operation with the elements of its operands and results."""
    operand_types, result_types = ([_parts(t) for t in types] for types in (o.operand_types, o.result_types))
    results: list[str] = []
    for k, name in enumerate(o.results):
        results += _named(name, o.result_types[k], known) if k < len(o.result_types) else [name]
    carried = dict(zip(range(len(o.operands)), o.operand_types, strict=False)) if _key(o) == _LOOP else {}
    return replace(
        o,
        results=results,
        operands=_leaves(given),
        operand_types=_leaves(operand_types),
        result_types=_leaves(result_types),
        regions=[_region(r, carried, known) for r in o.regions],
    )


def _region(region: Region, types: Mapping[int, str], known: Mapping[str, Tree]) -> Region:
    """Returns a region, whose arguments have *types*, and which may use the values *known* around it."""
    inner = dict(known)
    arguments: list[str] = []
    for k, name in enumerate(region.arguments):
        arguments += _named(name, types.get(k, ""), inner)
    return Region(arguments, _operations(region.operations, inner))


def _named(name: str, type_: str, known: dict[str, Tree]) -> list[str]:
    """Returns names for the elements of a value, which are added to those *known*; its own where it is no tuple."""
    if not type_.startswith(_OPENS):
        known.pop(name, None)
        return [name]
    known[name] = made = _tree(name, _parts(type_))
    return _leaves([made])


def _tree(name: str, parts: Tree) -> Tree:
    return name if isinstance(parts, str) else [_tree(f"{name} .{k}", p) for k, p in enumerate(parts)]


def _leaves(values: Sequence[Tree]) -> list[str]:
    """Returns the tensors in values, in order."""
    made: list[str] = []
    for v in values:
        made += [v] if isinstance(v, str) else _leaves(v)
    return made


def _parts(type_: str) -> Tree:
    """Returns the types in a tuple's, or the type itself."""
    if not type_.startswith(_OPENS):
        return type_
    made: list[Tree] = []
    depth, begin, inside = 0, 0, type_[len(_OPENS) : -1]
    for k, letter in enumerate(f"{inside},"):
        depth += (letter == "<") - (letter == ">")
        if letter == "," and depth == 0:
            made += [_parts(inside[begin:k].strip())] if inside[begin:k].strip() else []
            begin = k + 1
    return made
