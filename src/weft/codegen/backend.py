"""The protocol of backends: each is a folder of `codegen` that turns flat loop programs into code for some targets.

    program --write--> Source --compile--> Module --+
    program --write--> Source --compile--> Module --+--link--> Code --image--> Image, which this machine runs

A backend's folder has two modules that others know of: `backend`, whose `BACKEND` has these methods, and `facts`, whose function
`facts(target)` returns as text the versions of the tools that its code depends on, for the keys of caches; it is a module of its
own so that the cache is asked without importing a compiler. `backends.BACKENDS` names the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from weft.support.errors import ToolchainError
from weft.targets import Target

if TYPE_CHECKING:  # who asks the cache needs no loops
    from weft.loop import Program

Messages: TypeAlias = tuple[tuple[int, str], ...]
"""The assertions in a piece of code: pairs of `abi.assert_id` and the message."""

Rewrite: TypeAlias = "tuple[str, Callable[[Program, Target], Program]]"
"""A lowering pass of a backend's own, under the name that reports show."""


@dataclass(frozen=True)
class Source:
    """A program as the text that a backend's compiler takes (LLVM IR, C), and the assertions in it.

    Where it is *straight*, it is entered from C and has no loops, so that a call of a model runs each statement once at most.
    """

    text: str
    messages: Messages = ()
    straight: bool = False


@dataclass(frozen=True)
class Module:
    """A compiled program, to be linked with others: bytes of some *kind* ("elf", "c"), and the assertions in it.

    `entries` are the symbols that other modules can call, where the bytes do not tell it themselves. `renamed` are pairs: a
    symbol in the bytes, and its name in other modules; all others go by their own names.
    """

    kind: str
    data: bytes
    messages: Messages = ()
    renamed: tuple[tuple[str, str], ...] = ()
    entries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Image:
    """Position-independent machine code: bytes to map, where the global symbols are in them, messages of assertions.

    The bytes from `readonly` on are constants.
    """

    code: bytes
    symbols: Mapping[str, int]
    messages: Mapping[int, str]
    readonly: int


@dataclass(frozen=True)
class SourceCode:
    """A whole model or function as source text, for a compiler that Weft need not have, and messages of assertions.

    `symbols` are the names of its functions, by those of the programs; `binaries` the machine code that they are in, where the
    text is compiled already.
    """

    language: str
    text: str
    symbols: Mapping[str, str] = field(default_factory=dict)
    messages: Mapping[int, str] = field(default_factory=dict)
    binaries: Mapping[str, bytes] = field(default_factory=dict)


Code: TypeAlias = Image | SourceCode
"""The result of linking modules."""


class Backend(Protocol):
    """Makes code of flat programs. Only `write` and `listing` hold the interpreter lock; `compile` runs in threads."""

    @property
    def name(self) -> str:
        """The key of `BACKENDS`, and of `Target.backend`."""

    def passes(self, target: Target) -> Sequence[Rewrite]:
        """Returns the passes that follow those of `weft.lower`, in order."""

    def write(self, program: Program, target: Target) -> Source:
        """Writes all functions of a flat *program*; the first, and any that is exported, can be called from outside.

        Raises `LoweringError` for a node that has no translation.
        """

    def compile(self, source: Source, target: Target) -> Module:
        """Compiles text that `write` made for *target*; raises `ToolchainError` where the compiler refuses it."""

    def link(self, modules: Sequence[Module], target: Target) -> Code:
        """Joins *modules*; raises `ToolchainError` for symbols that are undefined or defined twice."""

    def image(self, code: Code, target: Target) -> Image:
        """Returns *code* as this machine runs it; raises `ToolchainError` where a tool for that is missing, or it can't."""

    def listing(self, program: Program, target: Target) -> str:
        """Returns the code of *program* for people to read: assembly, or the source text."""


def merge_messages(modules: Sequence[Module]) -> dict[int, str]:
    """Returns the messages of all modules by number; raises `ToolchainError` where two share one."""
    merged: dict[int, str] = {}
    for m in modules:
        for number, text in m.messages:
            if merged.setdefault(number, text) != text:
                raise ToolchainError(
                    f"two assertion messages share a number: {text!r} and {merged[number]!r}",
                    hint="compile them in one module",
                )
    return merged
