"""Writes compiled models as what a C toolchain links: an object with its header, or a shared library."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from weft.driver.export_elf import Part, Symbol, write_library, write_object
from weft.driver.export_header import c_name, header_text
from weft.native import _rt, header_files, source_files
from weft.runtime.artifact import artifact_header
from weft.runtime.package import Package
from weft.support.errors import ArtifactError, ToolchainError

MOST_EMBEDDED: Final = 16 << 20
"""Weights of more bytes are a file of their own, which is mapped: objects and programs stay small, and link fast."""

LIBRARY_NAME: Final = "weft_model"
"""What the symbols of a shared library begin with, whatever the model, so that programs can look them up."""
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
    (folder / "weft").mkdir(parents=True, exist_ok=True)
    made = [folder / "model.o", folder / "model.h", *([] if embedded else [folder / "weights.bin"])]
    _write(made[0], write_object(package.machine, parts, symbols))
    made[1].write_text(header_text(package, name, embedded=embedded), encoding="utf-8")
    if not embedded:
        _write(made[2], [weights])
    for source in runtime_sources():
        made.append(folder / "weft" / source.name)
        shutil.copyfile(source, made[-1])
    return made


def object_parts(package: Package, name: str) -> tuple[list[Part], list[Symbol]]:
    """Returns the parts of a model as sections, and the symbols `NAME_header`, `NAME_image` and `NAME_weights` of them."""
    image, weights = memoryview(package.image), memoryview(_rt.pack(package.constants))
    parts = [
        Part(f".rodata.{name}_header", artifact_header(package, image, weights)),
        Part(f".text.{name}", image, is_code=True, align=4096),
        Part(f".rodata.{name}_weights", weights if len(weights) else bytes(64), align=4096),
    ]
    symbols = [
        Symbol(f"{name}_{part}", n, 0, len(parts[n].data)) for n, part in enumerate(("header", "image", "weights"))
    ]
    symbols += [Symbol(f"{name}_{entry}", 1, getattr(package, entry), 0, True) for entry in ("plan", "main")]
    return parts, symbols


def export_library(package: Package, path: Path, compiler: str | None = None) -> bool:
    """Writes a shared library; returns whether it has the runtime in it, as it does where there is a C compiler.

    With the runtime, it exports all of weft.h, and `weft_open(options, &model, &error)`, which makes its model. Without, it
    exports what `weft_link` takes: `weft_model_header`, `weft_model_image` and `weft_model_weights`, for `dlsym` (a
    program linked with it would copy them, code too, to its own data). *compiler* is the C compiler to use (default: `cc`, if
    there is one), "" for none. Raises `ToolchainError` if the compiler fails.
    """
    found = shutil.which("cc") if compiler is None else compiler
    parts, symbols = object_parts(package, LIBRARY_NAME)
    if not found or package.machine != _rt.MACHINE:
        _write(path, write_library(package.machine, path.name, parts, symbols))
        return False
    with tempfile.TemporaryDirectory() as folder:
        model, source = Path(folder, "model.o"), Path(folder, "open.c")
        _write(model, write_object(package.machine, parts, symbols))
        source.write_text(_OPEN, encoding="utf-8")
        c_files = [s for s in runtime_sources() if s.suffix == ".c"]
        _run([
            found, "-shared", "-fPIC", "-std=c99", "-O2", f"-I{c_files[0].parent}", str(source), *map(str, c_files),
            str(model), "-pthread", "-Wl,-Bsymbolic", f"-Wl,-soname,{path.name}", "-o", str(path),
        ])  # fmt: skip
    return True


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolchainError(
            f"the C compiler failed: {done.stderr.strip() or done.returncode}",
            hint="see whether it compiles other programs",
        )


def _write(path: Path, pieces: Sequence[bytes | memoryview]) -> None:
    try:
        with open(path, "wb") as file:
            file.writelines(pieces)
    except OSError as error:
        raise ArtifactError(
            f"{path} can't be written: {error.strerror or error}", hint="choose another place"
        ) from None
