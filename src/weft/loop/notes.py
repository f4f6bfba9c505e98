"""Notes: typed facts and requests that a loop, a block or a function carries from one pass to a later one.

Each class of notes says where its notes may stand and whether several of them may stand there; `loop.verify` holds a program to
it. The text form is derived from the fields: a keyword, with the value of the only field, a tuple of several, or 1 for none.

    for k in range(0, 64, prefetch=(B, 2)):             Prefetch(B, 2)
    for t in bound(0, 32, thread="threadIdx.x"):        Thread("threadIdx.x")
    @function(task=1)                                   Task()

A new kind of note is one class here. Buffers are named by identity: a rewrite that replaces a buffer replaces it in notes too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import ClassVar, Final, TypeVar

from weft.ir import Node, node
from weft.loop.buffer import Buffer

THREAD_AXES: Final = (
    "blockIdx.x",
    "blockIdx.y",
    "blockIdx.z",
    "threadIdx.x",
    "threadIdx.y",
    "threadIdx.z",
    "vthread",
)
"""The axes of a grid: blocks, the threads of a block, and virtual threads."""


class Place(StrEnum):
    """The constructs that a note may stand on."""

    LOOP = "loop"
    BLOCK = "block"
    FUNCTION = "function"


class Note(Node):
    """A note; `key` is the name of its class in the text form, `places` are where it may stand."""

    __slots__ = ()
    key: ClassVar[str]
    places: ClassVar[tuple[Place, ...]]
    is_repeatable: ClassVar[bool] = False
    """Whether several notes of the class may stand on one place: their first fields then differ."""
    is_of_own_buffer: ClassVar[bool] = False
    """Whether the buffer that a note of the class names is allocated in its loop."""

    @property
    def keyword(self) -> str:
        """The name of the note in the text form."""
        return self.key

    def is_about_the_same(self, other: Note) -> bool:
        """Answers whether *other* would take the place of this note."""
        if type(self) is not type(other):
            return False
        return not self.is_repeatable or getattr(self, self.__match_args__[0]) == getattr(other, self.__match_args__[0])

    def problem(self) -> str | None:
        """Returns an error message if the fields have invalid values, else None."""
        return None

    def __repr__(self) -> str:
        fields = ", ".join([f"{n}={getattr(self, n)!r}" for n in self.__match_args__])
        return f"{type(self).__name__}({fields})"


@node
class Thread(Note):
    """A bound loop's iterations are the blocks, threads or virtual threads of *axis*."""

    key = "thread"
    places = (Place.LOOP,)
    axis: str

    def problem(self) -> str | None:
        """Refuses a name that is no axis of a grid."""
        return None if self.axis in THREAD_AXES else f"{self.axis!r} is no thread axis"


@node
class Prefetch(Note):
    """Each iteration of a loop prefetches the elements of *buffer* that the iteration *distance* later reads."""

    key = "prefetch"
    places = (Place.LOOP,)
    is_repeatable = True
    buffer: Buffer
    distance: int

    def problem(self) -> str | None:
        """Refuses a distance of no iterations."""
        return None if self.distance >= 1 else f"{self.distance} iterations before is not before"


@node
class DoubleBuffer(Note):
    """The iterations of a loop alternate between two copies of *buffer*, which is allocated in the loop."""

    key = "double_buffer"
    places = (Place.LOOP,)
    is_repeatable = True
    is_of_own_buffer = True
    buffer: Buffer


@node
class FetchAhead(Note):
    """The iterations of a loop use *copies* of *buffer* in turn, each of which is filled *ahead* iterations before it is used.

    The buffer is allocated in the loop, and filled by copies of memory that the loop does not write. The elements that an
    iteration has used stay as they are for the `copies - 1 - ahead` iterations after it.
    """

    key = "fetch_ahead"
    places = (Place.LOOP,)
    is_repeatable = True
    is_of_own_buffer = True
    buffer: Buffer
    copies: int
    ahead: int

    def problem(self) -> str | None:
        """Refuses to fill a copy before the iteration that used it last."""
        return (
            None
            if 1 <= self.ahead < self.copies
            else f"{self.copies} copies are not filled {self.ahead} iterations ahead"
        )


@node
class Retained(Note):
    """The shared memory that an iteration of a loop reads is not overwritten before the *iterations* after it are over."""

    key = "retained"
    places = (Place.LOOP,)
    iterations: int


@node
class TaskInside(Note):
    """The iterations of a parallel loop that a thread takes are run inside of the *loops* loops under it, which it runs once."""

    key = "task_inside"
    places = (Place.LOOP,)
    loops: int

    def problem(self) -> str | None:
        """Refuses no loops."""
        return None if self.loops >= 1 else f"{self.loops} loops are none to be inside of"


@node
class TensorInstruction(Note):
    """A block is one instruction of this *name*, which writes all of the regions that the block declares."""

    key = "tensor"
    places = (Place.BLOCK,)
    name: str


@node
class CrossThread(Note):
    """A block reduces the values of the threads along *axis*: lowering makes a tree reduction of it."""

    key = "cross_thread"
    places = (Place.BLOCK,)
    axis: str

    def problem(self) -> str | None:
        """Refuses a name that is no axis of the threads of a block."""
        is_one = self.axis in THREAD_AXES and self.axis.startswith("threadIdx")
        return None if is_one else f"{self.axis!r} is no axis of the threads of a block"


@node
class Kernel(Note):
    """A function is the program of a grid of threads: bound loops around the code of one thread."""

    key = "kernel"
    places = (Place.FUNCTION,)


@node
class Task(Note):
    """A function runs the range [begin, end) of its first two parameters, in any pieces, in any order."""

    key = "task"
    places = (Place.FUNCTION,)


@node
class Export(Note):
    """A function can be called from outside of its program."""

    key = "export"
    places = (Place.FUNCTION,)


@node
class External(Note):
    """A function is declared only: its code is in the *module* of that name. Its body is empty, but for the loops of a grid."""

    key = "external"
    places = (Place.FUNCTION,)
    module: str

    def problem(self) -> str | None:
        """Refuses a module without a name."""
        return None if self.module else "a module has a name"


@node
class MayAlias(Note):
    """The buffers that a function is given may alias."""

    key = "may_alias"
    places = (Place.FUNCTION,)


@node
class Entry(Note):
    """A function is the entry *kind* of a model; *args* name, for each parameter, its argument (see `codegen.entry_spec`)."""

    key = "entry"
    places = (Place.FUNCTION,)
    kind: str
    args: tuple[str, ...]

    @property
    def symbol(self) -> str:
        """The name of the C function."""
        return f"weft_{self.kind}"


@node
class Twins(Note):
    """The buffers *names* of a function may be the memory of its parameters *params*, if a caller has these in the same space.

    Whatever is copied between the two is the same then.
    """

    key = "twins"
    places = (Place.FUNCTION,)
    names: tuple[str, ...]
    params: tuple[str, ...]

    def problem(self) -> str | None:
        """Refuses names without parameters."""
        return None if len(self.names) == len(self.params) else "each buffer is the twin of one parameter"


@node
class UserNote(Note):
    """A note of the user's, of a *name* and a *value* of his own: no pass acts on it."""

    key = "note"
    places = (Place.LOOP, Place.BLOCK, Place.FUNCTION)
    is_repeatable = True
    name: str
    value: int | str | float | bool

    @property
    def keyword(self) -> str:
        """The name."""
        return self.name

    def problem(self) -> str | None:
        """Refuses the name of another class of notes."""
        return f"{self.name} is the name of a note of Weft's own" if self.name in NOTES else None


NOTES: Final[dict[str, type[Note]]] = {
    c.key: c for c in Note.__subclasses__() if "node_fields" in vars(c) and c is not UserNote
}
"""The classes of notes by their key, but for `UserNote`."""

N = TypeVar("N", bound=Note)


def find_note(notes: Iterable[Note], kind: type[N]) -> N | None:
    """Returns the first of *notes* that is of class *kind*, if there is one."""
    return next((n for n in notes if isinstance(n, kind)), None)


def with_note(notes: tuple[Note, ...], new: Note) -> tuple[Note, ...]:
    """Returns *notes* with *new*, in the place of one about the same if there is one."""
    kept = tuple([n for n in notes if not n.is_about_the_same(new)])
    last = max([k for k, n in enumerate(kept) if n.keyword == new.keyword], default=len(kept) - 1)
    return (*kept[: last + 1], new, *kept[last + 1 :])


def without_notes(notes: tuple[Note, ...], kind: type[Note]) -> tuple[Note, ...]:
    """Returns *notes* but for those of class *kind*."""
    return tuple([n for n in notes if not isinstance(n, kind)])


def buffers_in(note: Note) -> list[Buffer]:
    """Returns the buffers that *note* names."""
    return [b for f in note.__match_args__ if isinstance(b := getattr(note, f), Buffer)]


def with_buffers(note: Note, mapping: Mapping[Buffer, Buffer]) -> Note:
    """Returns *note* with the buffers that are keys of *mapping* replaced."""
    values = [getattr(note, f) for f in note.__match_args__]
    if not any(isinstance(v, Buffer) and v in mapping for v in values):
        return note
    made: Callable[..., Note] = type(note)
    return made(*[mapping.get(v, v) if isinstance(v, Buffer) else v for v in values])


def replace_in_notes(notes: tuple[Note, ...], mapping: Mapping[Buffer, Buffer]) -> tuple[Note, ...]:
    """Returns *notes* with the buffers that are keys of *mapping* replaced."""
    return tuple([with_buffers(n, mapping) for n in notes]) if notes else notes
