"""Where a compiled model comes from, in words: the notes that an artifact carries."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

import weft
from weft.driver.options import CompileOptions
from weft.graph import MemoryPlan
from weft.ir import Const
from weft.runtime.metadata import ModelMetadata

PIECE: Final = 4 << 20
"""Bytes of a file that are read and hashed at a time: between pieces the thread waits for the interpreter lock."""


def hash_files(files: Sequence[Path]) -> str:
    """Returns a line for each file, as `sha256sum` writes and checks them; the empty text for a model that was in memory."""
    lines = []
    piece = memoryview(bytearray(PIECE))
    for path in files:
        digest = hashlib.sha256()
        with open(path, "rb", buffering=0) as file:
            while count := file.readinto(piece):
                digest.update(piece[:count])
        lines.append(f"{digest.hexdigest()}  {path.name}\n")
    return "".join(lines)


def notes_of(
    model: str, metadata: ModelMetadata, options: CompileOptions, plan: MemoryPlan, records: Sequence[str] = ()
) -> Mapping[str, str]:
    """Returns the notes of a model: *model* as `hash_files` tells it, *records* the tuning records that were used."""
    return {
        "weft": weft.__version__,
        "llvm": f"llvmlite {version('llvmlite')}",
        "model": model,
        "options": options_text(options),
        "records": "\n".join(records) or "none",
        "memory": str(plan),
        **metadata.notes(),
    }


def options_text(options: CompileOptions) -> str:
    """Returns options as text, such as `opt_level=3 precision=model without=winograd,pack`."""
    without = f" without={','.join(options.without)}" if options.without else ""
    passes = f" passes={','.join(options.passes)}" if options.passes else ""
    denormals = f" denormals={options.denormals}" if options.denormals != "keep" else ""
    return f"opt_level={options.opt_level} precision={options.precision}{denormals}{without}{passes}"


def arena_bytes(plan: MemoryPlan) -> int | None:
    """Returns the bytes of a call's workspace; None where that depends on its shapes."""
    return int(plan.size.value) if isinstance(plan.size, Const) else None
