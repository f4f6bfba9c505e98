"""From a flat program to an object file in memory, by way of LLVM."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm

from weft.codegen.backend import Module, Source
from weft.codegen.llvm.ir_module import llvm_text, write_module
from weft.loop import Program
from weft.support.errors import ToolchainError
from weft.targets import Target

THOROUGH: Final = 2
"""The effort of LLVM's code generator for kernels."""

QUICK: Final = 0
"""The effort for straight code that a call runs once at most: it takes a third of the time, and the code is as fast."""

QUICKLY_SELECTED: Final = ("x86_64",)
"""The machines on which little effort is right: elsewhere it takes another instruction selector, and memory may be scarce."""


def llvm_version() -> str:
    """Returns LLVM's version, for the keys of caches."""
    return ".".join([str(n) for n in llvm.llvm_version_info])


def compile_function_module(program: Program, target: Target) -> Module:
    """Compiles *program*, whose functions are flat, to one object for *target*.

    Raises `LoweringError` for a node that has no translation, `ToolchainError` where LLVM refuses the module.
    """
    return compile_module(write_module(program, target), target)


def compile_module(written: Source, target: Target) -> Module:
    """Compiles a module that was written for *target*: LLVM's part, which needs no interpreter lock.

    Raises `ToolchainError` where LLVM refuses the module.
    """
    tools = _tools(target, QUICK if written.straight and target.isa.machine in QUICKLY_SELECTED else THOROUGH)
    return Module("elf", tools.machine.emit_object(tools.optimized(written.text)), written.messages)


def assembly(program: Program, target: Target) -> str:
    """Returns the assembly text of *program* for *target*."""
    tools = _tools(target, THOROUGH)
    text: str = tools.machine.emit_assembly(tools.optimized(llvm_text(program, target)))
    return text


class _Tools:
    """LLVM's code generator for one target, of some effort, and the passes before it. Threads may not share them.

    They are made once for many modules: each call into LLVM has to wait for the interpreter lock, which may be another thread's.
    """

    def __init__(self, target: Target, effort: int) -> None:
        _initialize()
        of = llvm.Target.from_triple(target.isa.triple)
        features = ",".join(target.isa.features)
        self.machine: Any = of.create_target_machine(
            cpu=target.isa.cpu, features=features, opt=effort, reloc="pic", codemodel="default"
        )
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
        self._builder = llvm.create_pass_builder(self.machine, options)
        self._passes = llvm.create_new_module_pass_manager()
        self._passes.add_sroa_pass()
        self._passes.add_instruction_combine_pass()
        self._passes.add_simplify_cfg_pass()

    def optimized(self, text: str) -> Any:
        """Parses and verifies *text* in a context of its own and runs the passes; emitting code uses the module up."""
        try:
            module = llvm.parse_assembly(text, llvm.create_context())
            module.verify()
        except RuntimeError as e:
            raise ToolchainError(f"LLVM refuses the module: {e}", hint="this is a bug in code generation") from e
        self._passes.run(module, self._builder)
        return module


_LOCAL = threading.local()


def _tools(target: Target, effort: int) -> _Tools:
    """Returns this thread's tools for *target*."""
    made: dict[tuple[str, int], _Tools] = _LOCAL.__dict__.setdefault("tools", {})
    key = target.fingerprint(), effort
    if key not in made:
        made[key] = _Tools(target, effort)
    return made[key]


KEEPS_SUMS_APART: Final = "-x86-machine-combiner=false"
"""Reassociation of integer sums is off. It shortens chains of additions that a tile's other sums hide, and each partial sum takes
a register: of a tile of 12 sums of AVX2, half were spilled in each step, and 1024 cubed took 1.15 of the time (EPYC 7003)."""


@cache
def _initialize() -> None:
    llvm.set_option("weft", KEEPS_SUMS_APART)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
