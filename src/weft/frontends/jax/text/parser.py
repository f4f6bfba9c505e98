"""From the text of a module to its functions. Operations are printed in a form of their own, or in MLIR's generic form:

%0 = stablehlo.slice %arg0 [0:2, 1:3] : (tensor<2x5xf32>) -> tensor<2x2xf32>
%1 = "stablehlo.slice"(%arg0) <{limit_indices = array<i64: 2, 3>, ...}> : (tensor<2x5xf32>) -> tensor<2x2xf32>

The own forms of most operations are a series of operands, words and attributes, and are read by one function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.frontends.jax.text.attribute_values import read_dictionary, read_list, read_value, unquoted
from weft.frontends.jax.text.locations import Locations
from weft.frontends.jax.text.mlir_tokens import AGAIN, Tokens
from weft.frontends.jax.text.operations import Argument, Function, Module, Operation, Region
from weft.support.errors import ModelError

_RETURNS: Final = ("return", "func.return", "stablehlo.return", "mhlo.return")


def parse_module(text: str, where: str) -> Module:
    """Returns the module that *text* is; raises `ModelError` with the line of a syntax error."""
    try:
        return _module(Tokens(text, where), text)
    except RecursionError as error:
        raise ModelError("the text nests too deeply", where=where, hint=AGAIN) from error


def _module(t: Tokens, text: str) -> Module:
    name, functions, resources = "", list[Function](), dict[str, str]()
    inside = False
    while t.kind != "end":
        if t.kind == "hash":
            t.take()
            t.expect("=")
            read_value(t)
        elif t.text == "{-#":
            resources = _resources(t)
        elif not inside and t.accept("module"):
            name, inside = _module_head(t), True
        elif inside and t.accept("}"):
            inside = False
            _location(t)
        elif t.accept("func.func"):
            functions.append(_function(t))
        elif t.text.startswith("sdy."):
            _skip_mesh(t)
        else:
            t.fail("a function is expected")
    if not functions:
        t.fail("the text has no function")
    if inside:
        t.fail("'}' is expected")
    return Module(name, {f.name: f for f in functions}, Locations(text), resources)


def _module_head(t: Tokens) -> str:
    name = t.take()[1:] if t.kind == "symbol" else ""
    if t.accept("attributes"):
        read_dictionary(t)
    t.expect("{")
    return name


def _skip_mesh(t: Tokens) -> None:
    """Skips `sdy.mesh @mesh = <["x"=2]>`, which names devices."""
    t.take()
    t.take_kind("symbol")
    t.expect("=")
    t.skip_nested("<", ">")


def _resources(t: Tokens) -> dict[str, str]:
    """Reads the large constants that stand behind a module, by name: texts of hexadecimal digits."""
    t.expect("{-#")
    made: dict[str, str] = {}
    while not t.accept("#-}"):
        if t.kind == "end":
            t.fail("'#-}' is expected")
        name = t.take()
        if t.accept(":") and t.kind == "string":
            made[name.strip('"')] = unquoted(t.take())
    return made


def _function(t: Tokens) -> Function:
    if t.text in ("public", "private", "nested"):
        t.take()
    name = t.take_kind("symbol")[1:].strip('"')
    arguments = _arguments(t, attributes=True)
    results = _function_results(t) if t.accept("->") else []
    if t.accept("attributes"):
        read_dictionary(t)
    body = _region(t)
    _location(t)
    return Function(name, arguments, results, Region([a.name for a in arguments], body.operations))


def _arguments(t: Tokens, *, attributes: bool = False) -> list[Argument]:
    """Reads `(%a: type, %b: type)`."""
    t.expect("(")
    made: list[Argument] = []
    while not t.accept(")"):
        name = t.take_kind("value")
        t.expect(":")
        type_ = t.take_kind("type")
        given = read_dictionary(t) if attributes and t.text == "{" else {}
        made.append(Argument(name, type_, given, _location(t)))
        if t.text != ")":
            t.expect(",")
    return made


def _function_results(t: Tokens) -> list[Mapping[str, Any]]:
    """Reads the attributes of a function's results."""
    if not t.accept("("):
        t.take_kind("type")
        return [{}]
    made: list[Mapping[str, Any]] = []
    while not t.accept(")"):
        t.take_kind("type")
        made.append(read_dictionary(t) if t.text == "{" else {})
        if t.text != ")":
            t.expect(",")
    return made


def _region(t: Tokens) -> Region:
    """Reads `{ ^bb0(%a: type): operations }`."""
    t.expect("{")
    arguments: list[Argument] = []
    if t.kind == "label":
        t.take()
        arguments = _arguments(t) if t.text == "(" else []
        t.expect(":")
    made: list[Operation] = []
    while not t.accept("}"):
        if t.kind == "label":
            t.fail("branches between blocks are not supported")
        made.append(_operation(t))
    if not made or made[-1].name not in _RETURNS:
        t.fail("a region has no return at its end")
    return Region([a.name for a in arguments], made)


def _operation(t: Tokens) -> Operation:
    line = t.line
    results = _results(t) if t.kind == "value" else []
    if t.kind == "string":
        made = Operation(unquoted(t.take()), line, results)
        _generic(t, made)
    else:
        made = Operation(t.take_kind("word"), line, results)
        _OWN_FORMS.get(made.name, _loose)(t, made)
    made.location = _location(t)
    return made


def _results(t: Tokens) -> list[str]:
    """Reads `%a, %b:2 =`: the names of results, those of a series as `%b#0`."""
    made: list[str] = []
    while True:
        name = t.take_kind("value")
        if t.accept(":"):
            count = t.take_kind("number")
            if not (count.isdecimal() and len(count) < 5):
                t.fail("fewer results are expected")
            made += [f"{name}#{k}" for k in range(int(count))] if count != "1" else [name]
        else:
            made.append(name)
        if not t.accept(","):
            break
    t.expect("=")
    return made


def _generic(t: Tokens, o: Operation) -> None:
    """Reads the rest of an operation in MLIR's generic form."""
    t.expect("(")
    while not t.accept(")"):
        o.operands.append(t.take_kind("value"))
        if t.text != ")":
            t.expect(",")
    if t.accept("<"):
        o.attributes |= read_dictionary(t)
        t.expect(">")
    if t.accept("("):
        o.regions.append(_region(t))
        while t.accept(","):
            o.regions.append(_region(t))
        t.expect(")")
    if t.text == "{":
        o.attributes |= read_dictionary(t)
    t.expect(":")
    _types(t, o)


def _loose(t: Tokens, o: Operation) -> None:
    """Reads operands, words and attributes in any order, and the types after them."""
    while t.text != ":" or t.kind == "string":
        if o.name in _RETURNS and (t.text in ("}", "loc")):
            return
        if t.kind == "value":
            o.operands.append(t.take())
        elif t.kind in ("word", "symbol", "string", "number"):
            word = t.take().lstrip("@").strip('"')
            if t.accept("="):
                o.attributes[word] = read_value(t, typed=False)
            else:
                o.words.append(word)
        elif t.text == "{":
            o.attributes |= read_dictionary(t)
        elif t.text == "[":
            o.attributes["ranges"] = read_list(t, "[", "]")
        elif t.text in ("(", ")", ","):
            t.take()
        else:
            t.fail(f"the operands and attributes of {o.name} are expected")
    t.expect(":")
    _types(t, o)


def _constant(t: Tokens, o: Operation) -> None:
    """Reads `dense<...> : type`."""
    if t.text == "{":
        read_dictionary(t)
    o.attributes["value"] = read_value(t)


def _while(t: Tokens, o: Operation) -> None:
    """Reads `(%a = %0, %b = %1) : types cond { ... } do { ... }`."""
    t.expect("(")
    names: list[str] = []
    while not t.accept(")"):
        names.append(t.take_kind("value"))
        t.expect("=")
        o.operands.append(t.take_kind("value"))
        if t.text != ")":
            t.expect(",")
    if t.accept(":"):
        _types(t, o)
    o.result_types = list(o.operand_types)
    if t.accept("attributes"):
        o.attributes |= read_dictionary(t)
    for word in ("cond", "do"):
        t.expect(word)
        o.regions.append(Region(names, _region(t).operations))


def _reduce(t: Tokens, o: Operation) -> None:
    """Reads `(%a init: %b), (%c init: %d) across dimensions = [0] : types reducer(%x: type, %y: type) ... { ... }`."""
    initial: list[str] = []
    while t.accept("("):
        o.operands.append(t.take_kind("value"))
        t.expect("init")
        t.expect(":")
        initial.append(t.take_kind("value"))
        t.expect(")")
        t.accept(",")
    o.operands += initial
    if t.accept("applies"):
        o.attributes["applies"] = t.take_kind("word")
    t.expect("across")
    t.expect("dimensions")
    t.expect("=")
    o.attributes["dimensions"] = read_list(t, "[", "]")
    if t.text == "{":
        o.attributes |= read_dictionary(t)
    t.expect(":")
    _types(t, o)
    if t.accept("reducer"):
        pairs: list[list[Argument]] = []
        while t.text == "(":
            pairs.append(_arguments(t))
        if any(len(p) != 2 for p in pairs):
            t.fail("a reducer takes two values of each operand")
        names = [p[side].name for side in (0, 1) for p in pairs]
        o.regions.append(Region(names, _region(t).operations))


def _types(t: Tokens, o: Operation) -> None:
    """Reads `(types) -> types`, or the type that operands and results share."""
    o.operand_types = _type_list(t)
    o.result_types = _type_list(t) if t.accept("->") else o.operand_types[-1:]


def _type_list(t: Tokens) -> list[str]:
    made: list[str] = []
    if t.accept("("):
        while not t.accept(")"):
            made.append(t.take_kind("type"))
            if t.text != ")":
                t.expect(",")
        return made
    made.append(t.take_kind("type"))
    while t.accept(","):
        made.append(t.take_kind("type"))
    return made


def _location(t: Tokens) -> str:
    return t.skip_nested("(", ")") if t.kind == "word" and t.accept("loc") else ""


_OWN_FORMS: Final[Mapping[str, Callable[[Tokens, Operation], None]]] = {
    "stablehlo.constant": _constant,
    "stablehlo.while": _while,
    "stablehlo.reduce": _reduce,
}
"""Operations whose form is not a series of operands and attributes."""
