"""Register buffers as SSA values: the value that each element has now, and the phis where control joins.

    T[0] = 0                                       (no text)
    for k in range(8):                   ->        loop:
        T[0] = T[0] + A[k]                           %t = phi float [ 0.0, %entry ], [ %sum, %loop ]
                                                     %sum = fadd float %t, %a

Values are numbered while the text is written (Braun et al., "Simple and efficient construction of static single assignment
form", 2013): an element that is read in a loop before it is written there may have been written by an earlier iteration, and one
that a branch writes has two values behind it. Such a value is a `Phi` without a name, which gets one, and a line of text, only
once it is read: no phi is dead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from weft.codegen.llvm.core.ir_builder import BasicBlock, Builder
from weft.loop import Buffer

Slot: TypeAlias = tuple[Buffer, int]
"""An element of a register buffer, or the first one of a vector: all accesses to a buffer are of the same vectors."""

UNWRITTEN = "poison"
"""The value of an element that nothing was written to."""


@dataclass(eq=False, slots=True)
class Phi:
    """A value that depends on the predecessor block: the phi instruction, and its place, written if anything reads it.

    *incoming* has a value for each label; a loop's phi is written when the loop ends, as the last value is known then.
    """

    slot: Slot
    block: BasicBlock
    level: int
    incoming: list[tuple[Held, str]]
    name: str = ""
    open: bool = False  # a loop's, whose end has not come


Held: TypeAlias = "str | Phi"


@dataclass(eq=False, slots=True)
class _Frame:
    """The values written in a region of control: a loop's body, a branch, or the whole function.

    A loop has the block that it begins with, the label before it, and the buffers that are *stored* to in it.
    """

    level: int
    header: BasicBlock | None = None
    before: str = ""
    stored: frozenset[Buffer] = frozenset()
    values: dict[Slot, Held] = field(default_factory=dict)
    entries: list[Phi] = field(default_factory=list)
    used: set[Slot] = field(default_factory=set)
    used_inside: int = 0


Written: TypeAlias = dict[Slot, Held]


class RegisterValues:
    """The values of the register buffers of one function at the place where its text is being written."""

    def __init__(self, build: Builder) -> None:
        self._build = build
        self._frames = [_Frame(0)]
        self.kinds: dict[Buffer, str] = {}  # the LLVM type of a buffer's vectors, of those that are values

    @property
    def used(self) -> int:
        """The elements read or written in the innermost loop or branch; loops and branches in it count theirs again."""
        frame = self._frames[-1]
        return len(frame.used) + frame.used_inside

    def load(self, buffer: Buffer, element: int) -> str:
        """Returns the value of an element; expressions of it are placed in the innermost region."""
        self._frames[-1].used.add((buffer, element))
        name = self._named(self._held((buffer, element), len(self._frames) - 1))
        if name[0] == "%":
            self._build.raise_level(name)
        return name

    def store(self, buffer: Buffer, element: int, value: str) -> None:
        """Gives an element a value."""
        frame = self._frames[-1]
        frame.values[buffer, element] = value
        frame.used.add((buffer, element))

    def forget(self, buffer: Buffer) -> None:
        """Drops the values of a buffer at the end of its allocation."""
        values = self._frames[-1].values
        for slot in [slot for slot in values if slot[0] is buffer]:
            del values[slot]

    def begin_branch(self) -> None:
        """Begins a path of control that is taken on a condition."""
        self._frames.append(_Frame(self._build.level))

    def end_branch(self) -> Written:
        """Ends that path, and returns the values written on it."""
        return self._ended().values

    def join(self, paths: list[tuple[Written, str]]) -> None:
        """Begins the current block, where *paths* meet: the values written on each, and the label of its last block."""
        frame, depth = self._frames[-1], len(self._frames) - 1
        merged: Written = {}
        for slot in dict.fromkeys([slot for written, _ in paths for slot in written]):
            incoming = [(w[slot] if slot in w else self._held(slot, depth), label) for w, label in paths]
            first = incoming[0][0]
            same = all(held is first for held, _ in incoming)
            merged[slot] = first if same else Phi(slot, self._build.block, frame.level, incoming)
        self._take(merged)

    def begin_loop(self, header: BasicBlock, before: str, stored: frozenset[Buffer]) -> None:
        """Begins a loop at the block *header*, reached from the block labelled *before*, in which buffers are *stored* to."""
        self._frames.append(_Frame(self._build.level, header, before, stored))

    def end_loop(self) -> None:
        """Ends the loop, whose current block is the one that jumps back."""
        frame, last = self._ended(), self._build.block.label
        read = [phi for phi in frame.entries if phi.name]
        for phi in frame.entries:
            phi.incoming.append((frame.values.get(phi.slot, UNWRITTEN), last))
            phi.open = False
        for phi in read:
            self._write(phi)
        entries = {phi.slot: phi for phi in frame.entries}
        self._take({slot: held for slot, held in frame.values.items() if held is not entries.get(slot)})

    def _ended(self) -> _Frame:
        used, frame = self.used, self._frames.pop()
        self._frames[-1].used_inside += used
        return frame

    def _take(self, written: Written) -> None:
        """Adds the values written in a region that has ended to the region around it, from where on they are known."""
        frame, levels = self._frames[-1], self._build.levels
        for held in written.values():
            name = held if isinstance(held, str) else held.name
            if levels.get(name, 0) > frame.level:
                levels[name] = frame.level
            if isinstance(held, Phi):
                held.level = min(held.level, frame.level)
        frame.values.update(written)

    def _held(self, slot: Slot, depth: int) -> Held:
        """Returns the value of an element in the frame number *depth*, from those around it if it was not written there."""
        frame = self._frames[depth]
        held = frame.values.get(slot)
        if held is not None:
            return held
        if depth == 0:
            return UNWRITTEN
        outer = self._held(slot, depth - 1)
        if frame.header is None or slot[0] not in frame.stored:
            return outer
        phi = Phi(slot, frame.header, frame.level, [(outer, frame.before)], open=True)
        frame.entries.append(phi)
        frame.values[slot] = phi
        return phi

    def _named(self, held: Held) -> str:
        """Returns the name of a value; where it had none, names it and those that it comes from, and writes them."""
        if isinstance(held, str):
            return held
        todo = [held]
        named: list[Phi] = []
        while todo:  # there may be more branches one after another than calls can nest
            phi = todo.pop()
            if phi.name:
                continue
            phi.name = self._build.fresh(phi.level)
            if not phi.open:
                named.append(phi)
                todo += [h for h, _ in reversed(phi.incoming) if isinstance(h, Phi)]
        for phi in reversed(named):
            self._write(phi)
        return held.name

    def _write(self, phi: Phi) -> None:
        """Writes a phi at the beginning of its block."""
        values = ", ".join([f"[ {self._named(held)}, %{label} ]" for held, label in phi.incoming])
        phi.block.lines.insert(0, f"  {phi.name} = phi {self.kinds[phi.slot[0]]} {values}")
