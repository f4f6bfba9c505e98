"""Buffers of more bytes than a binding may have: bound in parts, which functions of the kernel's module choose among.

    @group(0) @binding(1) var<storage, read_write> W: array<f32>;             // the first 128 MiB
    @group(0) @binding(2) var<storage, read_write> W_part: array<f32>;        // those that follow
    fn W_load(i: i32) -> f32 {
      if (i < 33554432i) { return W[i]; }
      return W_part[i - 33554432i];
    }

The parts lie one behind the other in one block of memory, and all but the last have as many bytes as a binding may have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.ir import Const
from weft.loop import Buffer
from weft.targets import Target

ALIGNMENT: Final = 256
"""Bytes, at a multiple of which a binding may begin on every device: up to so many of the first part are before the buffer."""


@dataclass(frozen=True)
class Parts:
    """The *names* of a buffer's bindings, each an array of elements of the type *kind*, but for the last of *count* elements."""

    names: tuple[str, ...]
    kind: str
    count: int

    @property
    def is_atomic(self) -> bool:
        """Tells whether the elements are atomic words."""
        return self.kind.startswith("atomic")

    def load(self, at: str) -> str:
        """Returns the element number *at*."""
        return f"{self.names[0]}_load({at})"

    def store(self, at: str, value: str) -> str:
        """Returns the store of the element number *at*; an atomic one is changed by an exclusive or with *value*."""
        return f"{self.names[0]}_store({at}, {value})"

    def functions(self) -> list[str]:
        """Returns the functions that load and store an element."""
        value = "u32" if self.is_atomic else self.kind
        load = "return atomicLoad(&{});" if self.is_atomic else "return {};"
        store = "atomicXor(&{}, value); return;" if self.is_atomic else "{} = value; return;"
        name = self.names[0]
        return [
            f"fn {name}_load(i: i32) -> {value} {{",
            *self._choice(load),
            "}",
            f"fn {name}_store(i: i32, value: {value}) {{",
            *self._choice(store),
            "}",
        ]

    def _choice(self, form: str) -> list[str]:
        """Returns the statements that have an element in the place of the braces of *form*, part by part."""
        lines = []
        for n, name in enumerate(self.names):
            element = f"{name}[i - {n * self.count}i]" if n else f"{name}[i]"
            is_last = n == len(self.names) - 1
            lines.append(
                f"  {form.format(element)}"
                if is_last
                else f"  if (i < {(n + 1) * self.count}i) {{ {form.format(element)} }}"
            )
        return lines


def count_parts(buffer: Buffer, target: Target) -> int:
    """Returns the number of bindings that a buffer takes: one where a call tells its size, which the call then checks."""
    most, size = None if target.grid is None else target.grid.buffer_bytes, buffer.shape[0]
    if most is None or not isinstance(size, Const):
        return 1
    needed = int(size.value) * buffer.dtype.bytes
    return 1 if needed <= most else -(-(needed + ALIGNMENT) // most)
