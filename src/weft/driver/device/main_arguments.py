"""The arguments of a model's `main` on a device: tensors that are copied to memory there, or to the processor's, and back."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from weft.driver.host.crossings import HOSTED
from weft.ir import ZERO
from weft.loop import Buffer, Entry, Param, Stmt, Twins, copy

DEVICE: Final = "global@1"
"""The scope of the device's memory."""


def twin_of(b: Buffer, name: str | None = None) -> Buffer:
    """Returns a buffer of the same size in the device's memory."""
    return Buffer(b.name if name is None else name, b.shape, b.dtype, DEVICE)


@dataclass(frozen=True)
class MovedTensor:
    """A tensor of the caller's that is copied to its *twin*, in the memory of the device or of the processor, or from it."""

    word: str
    tensor: Buffer
    twin: Buffer

    @property
    def is_hosted(self) -> bool:
        """Whether its twin is in the processor's memory."""
        return self.twin.scope == HOSTED

    def copied(self) -> Stmt:
        """Returns the copy of an input to its twin, or of an output from it."""
        to, source = (self.twin, self.tensor) if self.word.startswith("in") else (self.tensor, self.twin)
        return copy(to, ZERO, source, ZERO, self.tensor.shape[0])


@dataclass
class KeptArguments:
    """The arguments that `main` takes, with the words that say which they are.

    *tensors* are those in the device's memory, or copied there. For those that are *moved*, and the arena, `main` has *memory*
    of its own.
    """

    params: list[Param] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    moved: list[MovedTensor] = field(default_factory=list)
    tensors: list[Buffer] = field(default_factory=list)
    arena: list[Buffer] = field(default_factory=list)

    def keep(self, p: Param, word: str) -> None:
        """Adds an argument."""
        self.params.append(p)
        self.words.append(word)

    @property
    def memory(self) -> list[Buffer]:
        """The buffers that `main` allocates."""
        return [*[m.twin for m in self.moved], *self.arena]

    @property
    def before(self) -> list[Stmt]:
        """The copies of inputs."""
        return [m.copied() for m in self.moved if m.word.startswith("in")]

    @property
    def after(self) -> list[Stmt]:
        """The copies of outputs: from the processor's memory, if that has one."""
        hosts = {m.word for m in self.moved if m.is_hosted}
        outputs = [m for m in self.moved if m.word.startswith("out")]
        return [m.copied() for m in outputs if m.is_hosted or m.word not in hosts]

    @property
    def notes(self) -> tuple[Entry | Twins, ...]:
        """The notes of `main`: a call may be given the tensors that are moved where their twins are."""
        entry = Entry("main", tuple(self.words))
        names, tensors = [m.twin.name for m in self.moved], [m.tensor.name for m in self.moved]
        return (entry, Twins(tuple(names), tuple(tensors))) if names else (entry,)


class GivenArguments:
    """The arguments of `main` as it was for a processor; *states* are in the device's memory before a call and after it.

    `twins` has the buffers in the device's memory that are used for its buffers, but for those that stay the processor's.
    """

    def __init__(self, params: Sequence[Param], words: Sequence[str], states: Set[str]) -> None:
        self.given, self.states = list(zip(params, words, strict=True)), states
        buffers = [(p, word) for p, word in self.given if isinstance(p, Buffer) and p.scope != HOSTED]
        self.here = {p: word for p, word in buffers if word != "outside"}
        self.twins = {p: twin_of(p, p.name if self._stays(w) else f"{p.name}_device") for p, w in self.here.items()}
        self.callers = {word: p for p, word in self.here.items() if word not in ("arena", "constants")}

    def _stays(self, word: str) -> bool:
        """Tells whether an argument is in the device's memory when `main` is called."""
        return word == "constants" or word in self.states

    def kept(self, used: Set[Buffer]) -> KeptArguments:
        """Returns the arguments of a `main` that uses these buffers."""
        made = KeptArguments()
        for p, word in self.given:
            if not isinstance(p, Buffer):
                made.keep(p, word)
            elif p in self.here:
                self._keep_here(made, p, word, is_used=self.twins[p] in used)
            elif p.scope == HOSTED and p in used:
                if word in self.callers:
                    made.moved.append(MovedTensor(word, self.callers[word], p))
                else:
                    made.keep(p, word)
        return made

    def _keep_here(self, made: KeptArguments, p: Buffer, word: str, *, is_used: bool) -> None:
        """Adds an argument that has a twin in the device's memory."""
        twin = self.twins[p]
        if word == "arena":
            made.arena += [twin] if is_used else []
            return
        made.tensors += [twin if self._stays(word) else p] if is_used and word != "constants" else []
        if self._stays(word):
            made.keep(twin, "constants@1" if word == "constants" else word)
            return
        made.keep(p, word)
        made.moved += [MovedTensor(word, p, twin)] if is_used else []
