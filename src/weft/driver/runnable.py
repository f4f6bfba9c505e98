"""From a package that a backend wrote as source to one that this machine runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.codegen import Image, SourceCode, backend_of
from weft.native import _rt
from weft.runtime.package import Package
from weft.targets import Target

ENTRIES: Final = ("weft_plan", "weft_main")


def runnable(package: Package, target: Target) -> Package:
    """Returns *package*, which was compiled for *target*, with machine code for this machine.

    Raises `ToolchainError` where that takes a compiler that is missing.
    """
    if not package.source or package.replay is not None:
        return package
    code = SourceCode(target.isa.language, package.source, {name: name for name in ENTRIES}, package.asserts)
    image = backend_of(target).image(code, target)
    return with_image(replace(package, machine=_rt.MACHINE), image)


def with_image(package: Package, image: Image) -> Package:
    """Returns *package* with the code of *image*."""
    plan, main = (image.symbols[name] for name in ENTRIES)
    return replace(package, image=image.code, plan=plan, main=main, readonly=image.readonly, asserts=image.messages)
