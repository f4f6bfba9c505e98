"""Writes a compiled model as C99: one source file and its header, which need nothing but a C compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

import weft
from weft.driver.export.c_header import C_TYPES, c_name, c_names
from weft.runtime.lazy_constants import in_memory
from weft.runtime.package import Package, TensorSpec
from weft.support.errors import InputError, ToolchainError
from weft.support.files import write_pieces
from weft.support.text import printable_line
from weft.support.unique_names import UniqueNames

MOST_IN_SOURCE: Final = 4 << 20
"""Weights of more bytes are a file of their own: compilers are slow at long arrays."""

_ALLOC: Final = re.compile(r"ctx->alloc\(ctx, (.*?) \* (\d+)\);")
_WORDS_OF_A_LINE: Final = 5


def export_c(package: Package, path: Path) -> list[Path]:
    """Writes *path*, a header beside it, and the weights as a third file if they are large; returns the files.

    Raises `ToolchainError` for a model that was compiled for another target than C, `InputError` for one with dynamic dimensions.
    """
    check_package(package, path)
    name = c_name(path.stem)
    weights = np.frombuffer(memoryview(in_memory(package.constants)), np.uint8)
    embedded = weights.size <= MOST_IN_SOURCE
    made = [path, path.with_suffix(".h")]
    write_pieces(path, [text.encode() for text in source_pieces(package, name, path.stem, weights, embedded=embedded)])
    write_pieces(made[1], [header_text(package, name, embedded=embedded).encode()])
    if not embedded:
        made.append(path.with_suffix(".bin"))
        write_pieces(made[2], [weights.data])
    return made


def check_package(package: Package, path: Path) -> None:
    """Raises an error for a package of which no C source can be written."""
    if not package.source or package.replay is not None:
        raise ToolchainError(
            f"{path} is to be C, and the model was compiled for {package.target}", hint="use --target c"
        )
    if package.denormals == "flush":
        raise InputError("C source can't flush denormals", hint="let the program around it set the processor's mode")
    if "ctx->keep(" in package.source or "ctx->output(" in package.source:
        raise InputError(
            f"C source has memory of fixed size, and {path.stem} has memory whose size only a run tells",
            hint="write an object and a header instead, such as -o FOLDER/",
        )
    if "ctx->host(" in package.source:
        raise InputError(
            f"C source has no runtime beside it, and {path.stem} has strings, or random numbers without a seed, "
            "which the runtime computes",
            hint="write an object and a header instead, such as -o FOLDER/, or give random operators the attribute seed",
        )
    dynamic = sorted({d for s in (*package.inputs, *package.outputs) for d in s.shape if isinstance(d, str)})
    if dynamic or package.arena is None:
        raise InputError(
            f"C source has memory of fixed size, but the dimension {', '.join(dynamic) or 'of a workspace'} is dynamic",
            hint="give sizes, such as --shape batch=1",
        )


def source_pieces(package: Package, name: str, stem: str, weights: np.ndarray, *, embedded: bool) -> Iterator[str]:
    """Yields the text of the source file."""
    yield f"/* {name}, made by Weft {weft.__version__}: see {stem}.h. */\n"
    yield "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n"
    yield '#error "the weights are stored for little-endian machines"\n#endif\n'
    yield f'#define WEFT_EXPORT static\n#include "{stem}.h"\n{package.source}\n'
    if embedded:
        yield f"static const uint64_t weft_weights[{max(1, -(-weights.size // 8))}] = {{\n"
        yield from _words(weights)
        yield "};\n"
    else:
        yield "static const void *weft_weights;\n"
        yield f"void {name}_use_weights(const void *bytes) {{ weft_weights = bytes; }}\n"
    yield _memory(package)
    yield _messages(package, name)
    yield _run(package, name, embedded=embedded)


def _words(weights: np.ndarray) -> Iterator[str]:
    padded = np.zeros(max(8, -(-weights.size // 8) * 8), np.uint8)
    padded[: weights.size] = weights
    words = padded.view("<u8")
    for at in range(0, words.size, _WORDS_OF_A_LINE):
        yield "".join([f" 0x{w:x}u," for w in words[at : at + _WORDS_OF_A_LINE].tolist()]) + "\n"


def _memory(package: Package) -> str:
    """Returns the arena, and the functions of the context: tasks run one after another, scratch memory is a stack."""
    arena = -(-max(8, package.arena or 0) // 8)
    scratch = -(-_scratch_bytes(package.source) // 8)
    text = f"""static uint64_t weft_arena[{arena}];

static int32_t weft_in_turn(weft_ctx *ctx, weft_task *task, void *args, int64_t n) {{
  return n > 0 ? task(ctx, args, 0, n) : 0;
}}
"""
    if scratch == 0:
        return text
    return f"""{text}
static uint64_t weft_scratch[{scratch}];
static int64_t weft_taken;

static void *weft_take(weft_ctx *ctx, int64_t bytes) {{
  int64_t words = (bytes + 7) / 8;
  (void)ctx;
  if (words > {scratch} - weft_taken) return 0;
  weft_taken += words;
  return weft_scratch + (weft_taken - words);
}}

static void weft_give(weft_ctx *ctx, void *memory) {{
  (void)ctx;
  weft_taken = (uint64_t *)memory - weft_scratch;
}}
"""


def _scratch_bytes(source: str) -> int:
    """Returns no less than all scratch memory that is in use at a time; raises `InputError` where its size is dynamic."""
    total = 0
    for size, item in _ALLOC.findall(source):
        if not size.isdigit():
            raise InputError(
                "C source has memory of fixed size, but the workspace of a kernel is dynamic", hint="fix all sizes"
            )
        total += -(-int(size) * int(item) // 8) * 8
    return total


def _messages(package: Package, name: str) -> str:
    """Returns the messages of the checks in the code, and the function that tells the one that failed."""
    rows = "".join([f"    case {n}: return {_quoted(text)};\n" for n, text in sorted(package.asserts.items())])
    return f"""
int64_t {name}_details[4];
static int32_t weft_failed;

const char *{name}_explain(void) {{
  switch (weft_failed) {{
    case 0: return "";
{rows}    default: return "a check failed";
  }}
}}
"""


def _quoted(text: str) -> str:
    plain = printable_line(text).encode("ascii", "backslashreplace").decode()
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?") + '"'


def _run(package: Package, name: str, *, embedded: bool) -> str:
    """Returns the function that runs the model."""
    ins, outs, signature = _signature(package, name)
    lines = [f"{signature} {{"]
    for s, n in zip((*package.inputs, *package.outputs), (*ins, *outs), strict=True):
        lines.append(f"  int64_t {n}_shape[] = {{{', '.join(map(str, s.shape)) or '0'}}};")
    for side, specs, names in (("in", package.inputs, ins), ("out", package.outputs, outs)):
        rows = ", ".join(
            [f"{{(void *){n}, {n}_shape, {len(s.shape)}, {s.dtype.code}}}" for s, n in zip(specs, names, strict=True)]
        )
        lines.append(f"  weft_tensor {side}[] = {{{rows or '{0, 0, 0, 0}'}}};")
    functions = "weft_take, weft_give" if _scratch_bytes(package.source) else "0, 0"
    state = "1, 0, {0, 0, 0, 0}, 0, 0, 0, 0, 0"
    lines.append(
        f"  weft_ctx ctx = {{weft_in_turn, weft_arena, sizeof weft_arena, weft_weights, {functions}, {state}}};"
    )
    lines += [] if embedded else ["  if (weft_weights == 0) return -1;"]
    lines += [
        "  int32_t status = weft_plan(&ctx, in, out);",
        "  if (status == 0) status = weft_main(&ctx, in, out);",
        "  weft_failed = ctx.failed_assert;",
        f"  for (int i = 0; i < 4; i++) {name}_details[i] = ctx.detail[i];",
        "  return status;",
        "}",
        "",
    ]
    return "\n".join(lines)


def _signature(package: Package, name: str) -> tuple[list[str], list[str], str]:
    """Returns the names of inputs and outputs in C, and the declaration of the function that runs the model."""
    unique = UniqueNames(first=2)
    ins, outs = (c_names([s.name for s in specs], unique) for specs in (package.inputs, package.outputs))
    params = [f"const {C_TYPES[s.dtype.name]} *{n}" for s, n in zip(package.inputs, ins, strict=True)]
    params += [f"{C_TYPES[s.dtype.name]} *{n}" for s, n in zip(package.outputs, outs, strict=True)]
    return ins, outs, f"int32_t {name}_run({', '.join(params) or 'void'})"


def header_text(package: Package, name: str, *, embedded: bool) -> str:
    """Returns the header of the source file."""
    rows = "".join([f" *   {side:<7} {_row(s)}\n" for side, specs in _sides(package) for s in specs])
    signature = _signature(package, name)[2]
    weights = (
        ""
        if embedded
        else f"""
/* Says where the weights are, 8-byte aligned: the contents of the file with the ending .bin. To be called before all else. */
void {name}_use_weights(const void *bytes);
"""
    )
    return f"""/* {name}, made by Weft {weft.__version__} for {package.target}.
 *
 * Needs a C99 compiler, and no library but -lm where it takes roots.
 *
{rows} */
#ifndef WEFT_SOURCE_{name}_H
#define WEFT_SOURCE_{name}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif
{weights}
/* Runs the model in static memory: by one thread at a time. Returns 0, or another number where it failed. */
{signature};

/* Tells in English which check failed in the last run, with {{0}} to {{3}} for the numbers in {name}_details. */
const char *{name}_explain(void);
extern int64_t {name}_details[4];

#ifdef __cplusplus
}}
#endif
#endif
"""


def _sides(package: Package) -> Iterator[tuple[str, tuple[TensorSpec, ...]]]:
    yield "input", package.inputs
    yield "output", package.outputs


def _row(spec: TensorSpec) -> str:
    return printable_line(str(spec)).replace("*/", "* /").replace("\\", "/")
