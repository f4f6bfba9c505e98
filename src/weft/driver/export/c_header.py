"""Writes the C header of a model that is linked into a program: functions that make it, and call it with plain arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import weft
from weft.runtime.package import Package, TensorSpec
from weft.support.dtypes import STORAGE
from weft.support.text import printable_line
from weft.support.unique_names import UniqueNames

C_TYPES: Final = {
    "bool": "uint8_t",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "u8": "uint8_t",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    **dict.fromkeys(STORAGE, "uint8_t"),
    "f32": "float",
    "f64": "double",
    "handle": "uint64_t",
}
_TAKEN: Final = (
    "alignas alignof and asm auto bool break case catch char class const continue default delete do double "
    "else enum explicit export extern false float for friend goto if inline int long mutable namespace new "
    "not operator or private protected public register restrict return short signed sizeof static struct "
    "switch template this throw true try typedef typename union unsigned using virtual void volatile while "
    "xor ctx in out status model error options parts weights"
)
"""Words that C or C++ keeps for itself, and names that the header uses."""
_KEYWORDS: Final = frozenset(_TAKEN.split(" "))


_STATE: Final = "\n * The model has states: give the context a state first, by weft_use."
_LATE: Final = (
    " A weft_tensor has room for the sizes of an output that only the\n"
    " * call knows: it leaves them there, and where the elements are, in memory of the context (weft_on_output in weft.h)."
)


def c_name(text: str) -> str:
    """Returns a C identifier like *text*."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII) or "x"
    if name[0].isdigit() or name[0] == "_" or name in _KEYWORDS:
        name = f"x{'' if name[0] == '_' else '_'}{name}"
    return name


def c_names(texts: Iterable[str], unique: UniqueNames) -> list[str]:
    """Returns C identifiers like *texts*, all of which differ."""
    return [unique.of(c_name(text)) for text in texts]


def header_text(package: Package, name: str, *, embedded: bool) -> str:
    """Returns the header of *package*, linked under *name*; its weights are in the object too, or else in a file."""
    rows = "\n".join(f"//   {side:<7} {_row(s)}" for side, specs in _sides(package) for s in specs)
    extra = "" if embedded else ", and weights.bin beside the program"
    path = "" if embedded else "const char *path, "
    given = "NULL" if embedded else "path"
    weights = f"{name}_weights" if embedded else "NULL"
    takes = "" if embedded else " The weights are in the file weights.bin, whose path it takes."
    made = f"for {package.target or package.machine}, made by Weft {weft.__version__}"
    return f"""// {name}, {made}. Link model.o{extra}; in this folder:
//
//   cc main.c model.o weft/*.c -I. -Iweft -pthread -o main
//
{rows}
#ifndef WEFT_MODEL_{name}_H
#define WEFT_MODEL_{name}_H

#include <stddef.h>

#include "weft.h"

#ifdef __cplusplus
extern "C" {{
#endif

extern const unsigned char {name}_header[], {name}_image[], {name}_weights[];

/* Makes the model; see weft_load in weft.h for the arguments, and for what to do with it.{takes} */
static inline int32_t {name}_load({path}const weft_options *options, weft_model **model, weft_error *error) {{
  weft_linked parts = {{{name}_header, {name}_image, {weights}}};
  return weft_link(&parts, {given}, options, model, error);
}}

{_call(package, name)}
#ifdef __cplusplus
}}
#endif
#endif
"""


def _sides(package: Package) -> Iterable[tuple[str, Sequence[TensorSpec]]]:
    return ("input", package.called_inputs), ("output", package.called_outputs), ("state", package.state_inputs)


def _row(spec: TensorSpec) -> str:
    return printable_line(str(spec)).replace("\\", "/")


def _call(package: Package, name: str) -> str:
    """Returns a function that calls the model: dynamic dimensions, inputs, outputs, in order.

    For a late output it takes a `weft_tensor` with room for the sizes, in which it leaves them, and where the elements are.
    """
    unique = UniqueNames(first=2)
    called = dict.fromkeys(d for s in package.called_inputs for d in s.shape if isinstance(d, str))
    sizes = dict(zip(called, c_names(called, unique), strict=True))
    ins = c_names([s.name for s in package.called_inputs], unique)
    outs = c_names([s.name for s in package.called_outputs], unique)
    made = list(zip(package.called_outputs, outs, strict=True))
    late = [(k, n) for k, (s, n) in enumerate(made) if s.late]
    params = [f"int64_t {n}" for n in sizes.values()]
    params += [f"const {_type(s)} *{n}" for s, n in zip(package.called_inputs, ins, strict=True)]
    params += [f"{_type(s)} *{n}" for s, n in made]
    lines = [
        "/* Calls the model: dynamic dimensions, inputs, outputs of the shapes that the names say. Returns a weft_status,",
        f" * which weft_explain puts into words.{_LATE if late else ''}{_STATE if package.states else ''} */",
        f"static inline int32_t {name}_run(weft_ctx *ctx, {', '.join(params)}) {{",
    ]
    lines += [_shape(s, n, sizes) for s, n in zip(package.called_inputs, ins, strict=True)]
    lines += [f"  int64_t {n}_shape[{max(1, len(s.shape))}];" for s, n in made if not s.late]
    lines += [_tensors("in", package.called_inputs, ins), _tensors("out", package.called_outputs, outs)]
    lines += ["  int32_t status = weft_plan(ctx, in, out);"]
    lines += _calling(late)
    return "\n".join(lines)


def _shape(spec: TensorSpec, name: str, sizes: Mapping[str, str]) -> str:
    """Returns the line that declares the shape of the input *name*; *sizes* are the names of dynamic dimensions in C."""
    shape = ", ".join(sizes[d] if isinstance(d, str) else str(d) for d in spec.shape)
    return f"  int64_t {name}_shape[] = {{{shape or '0'}}};"


def _type(spec: TensorSpec) -> str:
    """Returns the C type of a tensor's elements; a late output is a `weft_tensor`."""
    return "weft_tensor" if spec.late else C_TYPES[spec.dtype.name]


def _calling(late: Sequence[tuple[int, str]]) -> list[str]:
    """Returns the lines that run a model that is planned; *late* are the numbers and the names of late outputs."""
    if not late:
        return ["  return status != WEFT_OK ? status : weft_run(ctx, in, out);", "}", ""]
    told = [f"  {n}->data = out[{k}].data;" for k, n in late]
    return ["  if (status == WEFT_OK) status = weft_run(ctx, in, out);", *told, "  return status;", "}", ""]


def _tensors(array: str, specs: Sequence[TensorSpec], names: Sequence[str]) -> str:
    """Returns the declaration of the *array* of tensors, at least one, with the data and the shapes that *names* have."""
    places = [
        f"NULL, {n}->shape" if s.late else f"(void *)(uintptr_t){n}, {n}_shape"
        for s, n in zip(specs, names, strict=True)
    ]
    rows = ", ".join(f"{{{place}, {len(s.shape)}, {s.dtype.code}}}" for s, place in zip(specs, places, strict=True))
    return f"  weft_tensor {array}[] = {{{rows or '{NULL, NULL, 0, 0}'}}};"
