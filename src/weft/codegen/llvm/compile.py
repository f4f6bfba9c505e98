"""From a flat program to an object file in memory, by way of LLVM."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from weft.codegen.llvm.elf import undefined_symbols
from weft.codegen.llvm.module import llvm_text, write_module
from weft.loop.nodes import Program
from weft.support.errors import ToolchainError
from weft.targets.target import Target


@dataclass(frozen=True)
class ObjectCode:
    """One relocatable object: its ELF image, and the messages of its assertions by number, as pairs.

    `renamed` are pairs too, a global symbol in the image and what other objects call it; all others go by their own names.
    """

    elf: bytes
    messages: tuple[tuple[int, str], ...]
    renamed: tuple[tuple[str, str], ...] = ()

    def undefined(self) -> list[str]:
        """Returns the symbols that another object must define."""
        return undefined_symbols(self.elf)


def llvm_version() -> str:
    """Returns LLVM's version, for the keys of caches."""
    return ".".join([str(n) for n in llvm.llvm_version_info])


def compile_function_module(program: Program, target: Target) -> ObjectCode:
    """Compiles *program*, whose functions are flat, to one object for *target*.

    Raises `LoweringError` for a node that has no translation, `ToolchainError` where LLVM refuses the module.
    """
    written = write_module(program, target)
    machine = _machine(target)
    module = _optimized(written.text, machine)
    return ObjectCode(machine.emit_object(module), written.messages)


def assembly(program: Program, target: Target) -> str:
    """Returns the assembly text of *program* for *target*."""
    machine = _machine(target)
    text: str = machine.emit_assembly(_optimized(llvm_text(program, target), machine))
    return text


def _optimized(text: str, machine: Any) -> Any:
    """Parses and verifies *text* in a context of its own and runs the passes; emitting code uses the module up."""
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as e:
        raise ToolchainError(f"LLVM refuses the module: {e}", hint="this is a bug in code generation") from e
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, _pass_builder(machine))
    return module


def _pass_builder(machine: Any) -> Any:
    options = llvm.create_pipeline_tuning_options()
    options.speed_level = 2
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    return llvm.create_pass_builder(machine, options)


_LOCAL = threading.local()


def _machine(target: Target) -> Any:
    """Returns this thread's code generator for *target*: they may not be shared."""
    _initialize()
    machines: dict[str, Any] = _LOCAL.__dict__.setdefault("machines", {})
    key = target.fingerprint()
    if key not in machines:
        of = llvm.Target.from_triple(target.triple)
        features = ",".join(target.features)
        machines[key] = of.create_target_machine(
            cpu=target.cpu, features=features, opt=2, reloc="pic", codemodel="default"
        )
    return machines[key]


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
