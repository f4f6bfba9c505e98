"""Writes compiled models in forms that a C toolchain links: an object with its header, or a shared library."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from weft.codegen.objects import Part, Symbol, write_object
from weft.driver.export.c_header import c_name, header_text
from weft.native import _rt, header_files, include_folders, source_files
from weft.runtime.artifact import artifact_header, check_saved
from weft.runtime.lazy_constants import in_memory
from weft.runtime.package import Package
from weft.support.errors import ArtifactError, ToolchainError
from weft.support.files import check_folder, write_pieces

MOST_EMBEDDED: Final = 16 << 20
"""Weights of more bytes are a file of their own, which is mapped: objects and programs stay small, and link fast."""

LIBRARY_NAME: Final = "weft_model"
"""The prefix of a shared library's symbols, the same for every model, so that programs can look them up."""
_WITHOUT: Final = (
    "apt install gcc, or the like; or save a .weft file, which needs no compiler and which weft_load opens"
)
_ABROAD: Final = "write a FOLDER/, and link it there with the runtime's sources; or save a .weft file"
_OPEN: Final = """#include "weft.h"
extern const unsigned char weft_model_header[], weft_model_image[], weft_model_weights[];
int32_t weft_open(const weft_options *options, weft_model **model, weft_error *error);
int32_t weft_open(const weft_options *options, weft_model **model, weft_error *error) {
  weft_linked parts = {weft_model_header, weft_model_image, weft_model_weights};
  return weft_link(&parts, 0, options, model, error);
}
"""


def runtime_sources() -> list[Path]:
    """Returns the runtime's C files and headers; raises `ToolchainError` where Weft was installed without them."""
    found = [*source_files(), *header_files()]
    if not found:
        raise ToolchainError("the runtime's C sources are not installed", hint="install weft again")
    return found


def export_folder(package: Package, folder: Path, *, embed: bool | None = None) -> list[Path]:
    """Writes `model.o`, `model.h` and the runtime's sources to *folder*, which is made if need be; returns the files.

    Symbols are named after the folder. The weights are in the object, or, if not *embed* (by default: if they are large), in
    `weights.bin`. Files that are there already are replaced.
    """
    name = c_name(folder.resolve().name)
    parts, symbols = object_parts(package, name)
    weights = parts[-1].data
    embedded = len(weights) <= MOST_EMBEDDED if embed is None else embed
    if not embedded:
        parts, symbols = parts[:-1], [s for s in symbols if s.part < 2]
    check_folder(folder)
    check_folder(folder / "weft")
    made = [folder / "model.o", folder / "model.h", *([] if embedded else [folder / "weights.bin"])]
    write_pieces(made[0], write_object(package.machine, parts, symbols))
    write_pieces(made[1], [header_text(package, name, embedded=embedded).encode()])
    if not embedded:
        write_pieces(made[2], [weights])
    for source in runtime_sources():
        made.append(folder / "weft" / source.name)
        write_pieces(made[-1], [source.read_bytes()])
    return made


def object_parts(package: Package, name: str) -> tuple[list[Part], list[Symbol]]:
    """Returns the parts of a model as sections, and the symbols `NAME_header`, `NAME_image` and `NAME_weights` of them."""
    check_saved(package)
    if package.replay is not None:
        raise ArtifactError(
            f"a model for {package.target} has no code that a program in C could link",
            hint="save it as a .weft file, which weft.load runs, or compile it for a cpu target",
        )
    image, weights = memoryview(package.image), memoryview(in_memory(package.constants))
    parts = [
        Part(f".rodata.{name}_header", artifact_header(package, image, len(weights), _rt.checksum(weights))),
        Part(f".text.{name}", image, is_code=True, align=4096),
        Part(f".rodata.{name}_weights", weights if len(weights) else bytes(64), align=4096),
    ]
    symbols = [
        Symbol(f"{name}_{part}", n, 0, len(parts[n].data)) for n, part in enumerate(("header", "image", "weights"))
    ]
    symbols += [Symbol(f"{name}_{entry}", 1, getattr(package, entry), is_function=True) for entry in ("plan", "main")]
    return parts, symbols


def export_library(package: Package, path: Path, compiler: str | None = None) -> None:
    """Writes a shared library with the runtime in it.

    It exports all of weft.h, and `weft_open(options, &model, &error)`, which makes its model; nothing else. *compiler* is the C
    compiler to use (default: `cc`). Raises `ToolchainError` if there is none, or it fails, or makes code for another machine.
    """
    parts, symbols = object_parts(package, LIBRARY_NAME)
    model_object = write_object(package.machine, parts, symbols)
    found = find_compiler(path) if compiler is None else compiler
    if package.machine != _rt.MACHINE:
        raise ToolchainError(
            f"{path} can't be made: it is for {package.machine}, and the C compiler here for {_rt.MACHINE}",
            hint=_ABROAD,
        )
    with tempfile.TemporaryDirectory() as folder:
        model, source, linked = (Path(folder, name) for name in ("model.o", "open.c", "model.so"))
        write_pieces(model, model_object)
        source.write_text(_OPEN, encoding="utf-8")
        exported = Path(folder, "exported")
        exported.write_text(f"{{ global: {'; '.join(exported_names())}; local: *; }};\n", encoding="utf-8")
        c_files = [s for s in runtime_sources() if s.suffix == ".c"]
        _run([
            found, "-shared", "-fPIC", "-std=c99", "-O2", f"-I{include_folders()[0]}", str(source), *map(str, c_files),
            str(model), "-pthread", "-Wl,-Bsymbolic", f"-Wl,-soname,{path.name}", f"-Wl,--version-script={exported}",
            "-o", str(linked),
        ])  # fmt: skip
        write_pieces(path, [linked.read_bytes()])


def find_compiler(path: Path) -> str:
    """Returns the C compiler that makes the library *path*; raises `ToolchainError` if there is none."""
    found = shutil.which("cc")
    if found is None:
        raise ToolchainError(f"{path} can't be made: that takes a C compiler, and there is none", hint=_WITHOUT)
    return found


def exported_names() -> list[str]:
    """Returns the functions that a shared library exports: those that weft.h declares for programs, and `weft_open`."""
    header = (include_folders()[0] / "weft.h").read_text(encoding="utf-8")
    declared = re.findall(r"^(?!static|typedef)\w[\w *]*?\b(weft_\w+)\(", header, re.MULTILINE)
    return [*[name for name in declared if not name.startswith("weft_port_")], "weft_open"]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolchainError(
            f"the C compiler failed: {done.stderr.strip() or done.returncode}",
            hint="see whether it compiles other programs",
        )
