"""The state of one kernel while it is written in WGSL, beside that of any function in C's family."""

from __future__ import annotations

from weft.codegen.c_family.dialect import Dialect
from weft.codegen.c_family.writer import Needs, Writer
from weft.codegen.wgsl.buffer_parts import Parts
from weft.loop import Buffer
from weft.targets import Target


class KernelWriter(Writer):
    """Writes one kernel.

    `written` are the buffers that the kernel stores to, `updated` those whose words it updates atomically, `quads` those that are
    arrays of vectors of four elements, and `begins` the names of the elements at which the bound ones begin; `parts` are those
    that are bound in parts. `outside` are declarations that stand before the kernel, and `block_numbers` the numbers of a block
    by the axes of its grid.
    """

    def __init__(self, target: Target, function: str, needs: Needs, dialect: Dialect) -> None:
        super().__init__(target, function, needs, dialect)
        self.written: set[Buffer] = set()
        self.updated: set[Buffer] = set()
        self.quads: set[Buffer] = set()
        self.begins: dict[Buffer, str] = {}
        self.parts: dict[Buffer, Parts] = {}
        self.outside: list[str] = []
        self.block_numbers: dict[str, str] = {}

    def temporary_of(self, text: str) -> str:
        """Gives a value a name, unless it has one."""
        return text if text.replace("_", "").isalnum() else self.temporary_word(text)

    def temporary_word(self, text: str) -> str:
        """Gives a value a name."""
        name = self.fresh("w")
        self.local(name, f"let {name} = {text};")
        return name
