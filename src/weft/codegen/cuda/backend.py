"""CUDA C++ as a backend: machine code of kernels by NVRTC, which a device loads as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.backend import Code, Image, Module, Rewrite, Source, SourceCode
from weft.codegen.c_family.check_fragments import check_fragments
from weft.codegen.c_family.kernel_facts import read_facts
from weft.codegen.cuda.cuda_kernels import code_arch, symbol_of, whole_source, write_source
from weft.codegen.cuda.fragment_registers import place_fragments
from weft.codegen.cuda.nvrtc import compile_cubin
from weft.codegen.cuda.warpgroups import form_warpgroups
from weft.loop import Program
from weft.support.errors import ToolchainError
from weft.targets import Target


class CudaBackend:
    """Kernels in CUDA C++, each program compiled by itself; see `codegen.backend.Backend`."""

    name = "cuda"

    def passes(self, target: Target) -> Sequence[Rewrite]:
        """Returns the passes that check warp-level products and form warpgroup products; NVRTC unrolls loops."""
        return (
            ("place_fragments", place_fragments),
            ("check_fragments", check_fragments),
            ("form_warpgroups", form_warpgroups),
        )

    def write(self, program: Program, target: Target) -> Source:
        """Writes the kernels of *program*."""
        return write_source(program, target)

    def compile(self, source: Source, target: Target) -> Module:
        """Compiles to machine code; raises `ToolchainError` where NVRTC is missing, or refuses the source."""
        facts, _ = read_facts(source.text)
        data = compile_cubin(whole_source(source), code_arch(target)).data if facts.kernels else b""
        return Module("cubin", data, source.messages, entries=facts.kernels)

    def link(self, modules: Sequence[Module], target: Target) -> Code:
        """Returns the code of *modules* side by side, by kernel; raises `ToolchainError` for kernels of one name."""
        symbols: dict[str, str] = {}
        binaries: dict[str, bytes] = {}
        for m in modules:
            for kernel in m.entries:
                name = dict(m.renamed).get(kernel, kernel)
                if name in symbols:
                    raise ToolchainError(f"the kernel {name} is defined twice", hint="link each module once")
                symbols[name], binaries[name] = symbol_of(kernel), m.data
        return SourceCode("cuda", "", symbols, binaries=binaries)

    def image(self, code: Code, target: Target) -> Image:
        """Raises `ToolchainError`: a device's code is no part of this process."""
        raise ToolchainError(
            "kernels for CUDA are no machine code of this processor", hint="weft.compile loads them on the device"
        )

    def listing(self, program: Program, target: Target) -> str:
        """Returns the source of *program*'s kernels."""
        return read_facts(write_source(program, target).text)[1]


BACKEND: Final = CudaBackend()
