"""Writes the type stub of the primitives as methods, from their signatures.

python -m weft.schedule.stubs          writes it beside methods.py
"""

from __future__ import annotations

import re
from inspect import Parameter
from pathlib import Path

import weft.schedule.primitives  # noqa: F401  (registers them)
from weft.schedule.cursors.primitive import PRIMITIVES, Primitive

STUB = Path(__file__).with_name("methods.pyi")

_HEAD = '''"""Generated from the primitives' signatures by `python -m weft.schedule.stubs`; do not edit."""

from collections.abc import Sequence
from typing import Any

from weft.schedule.cursors.state import BlockRef, LoopRef

class PrimitiveMethods:
    """The primitives as methods; each applies one to the schedule and records the step."""

    def apply(self, name: str, /, *arguments: Any, **keywords: Any) -> Any: ...
'''


def stub_text() -> str:
    """Returns the text of the stub."""
    return _HEAD + "".join(_method(p) for _, p in sorted(PRIMITIVES.items()))


def _method(p: Primitive, longest: int = 130) -> str:
    parameters = ", ".join(_declared(x) for x in p.signature.parameters.values())
    returned = re.fullmatch(r"tuple\[Change, (.*)\]", str(p.signature.return_annotation).strip("'"))
    result = returned.group(1) if returned else "None"
    line = f"    def {p.name}(self, {parameters}) -> {result}: ...\n"
    return line if len(line) <= longest else line.replace("(self", "(\n        self").replace(") ->", "\n    ) ->")


def _declared(x: Parameter) -> str:
    default = "" if x.default is Parameter.empty else f" = {x.default!r}"
    return f"{x.name}: {x.annotation}{default}"


if __name__ == "__main__":
    STUB.write_text(stub_text())
