"""The system's C compiler, which makes an image for this machine of generated C."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from weft.codegen.backend import Image, Module, SourceCode
from weft.codegen.objects import link
from weft.support.errors import ToolchainError

FLAGS: Final = (
    "-std=c99",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-fno-jump-tables",
    "-fno-tree-loop-distribute-patterns",
    "-fno-trapping-math",
    "-w",
)
"""The image has no data of its own to write, calls nobody, and holds no tables of addresses."""


def image_of(code: SourceCode, page: int) -> Image:
    """Compiles *code* with `cc` and links it; raises `ToolchainError` where there is no compiler, or it fails."""
    found = shutil.which("cc")
    if found is None:
        raise ToolchainError(
            "generated C runs here only where there is a C compiler, and there is none",
            hint="apt install gcc, or the like; or write the source with `weft compile MODEL -o FILE.c --target c`",
        )
    with tempfile.TemporaryDirectory() as folder:
        source, compiled = Path(folder, "unit.c"), Path(folder, "unit.o")
        source.write_text(code.text, encoding="utf-8")
        done = subprocess.run(
            [found, *FLAGS, "-c", source, "-o", compiled], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise ToolchainError(
                f"the C compiler failed: {done.stderr.strip() or done.returncode}",
                hint="see whether it compiles other programs",
            )
        data = compiled.read_bytes()
    renamed = tuple([(c_name, name) for name, c_name in code.symbols.items()])
    return link([Module("elf", data, tuple(code.messages.items()), renamed)], page)
