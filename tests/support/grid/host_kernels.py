"""Kernels of devices, compiled for the processor, which runs their threads one after another (`grid.c`)."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

HERE = Path(__file__).parent


@cache
def folder() -> Path:
    """Where kernels are built."""
    return Path(mkdtemp(prefix="weft-host-kernels-"))


@cache
def grid_library(*more: Path) -> Path:
    """The functions of `grid.h` as a shared object, with those of *more* sources in C."""
    made = folder() / f"lib{'_'.join(['grid', *[p.stem for p in more]])}.so"
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{HERE}"]
    sources = [str(p) for p in (HERE / "grid.c", *more)]
    subprocess.run(["gcc", *flags, *sources, "-o", str(made), "-ldl"], check=True)
    return made


@cache
def compiled(text: str, library: Path, *options: str) -> Path:
    """Kernels in C++, with an `entry` each, as a shared object that is linked with a `grid_library`."""
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    source, made = folder() / f"{name}.cpp", folder() / f"{name}.so"
    source.write_text(text, encoding="utf-8")
    flags = ["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off", *options]
    subprocess.run(["g++", *flags, str(source), str(library), "-o", str(made)], check=True)
    return made


def entry(kernel: str, arguments: Sequence[str]) -> str:
    """The function by which a kernel is run: it takes what *arguments* are made of as an array of pointers `p`."""
    return f'extern "C" void launch_{kernel}(void **p) {{ {kernel}({", ".join(arguments)}); }}'
