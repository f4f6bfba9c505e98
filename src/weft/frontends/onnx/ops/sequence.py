"""Sequences and optional values: their structure is known while a model is imported, and none is left in the graph."""

from __future__ import annotations

from typing import Final

from weft.frontends.onnx.call import Call, Held, HeldResults, Operand
from weft.frontends.onnx.file.tensors import element_type
from weft.frontends.onnx.held import ABSENT, Absent, TensorSequence, kind_of
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.graph.builder import static_sizes
from weft.graph.composites.run_time import late_shapes
from weft.graph.composites.sequences import concat, element, stack, steps_of
from weft.support.dtypes import bool_, f32, i64

_LATE: Final = "positions that only a run tells"


@translates("SequenceConstruct", holds=True)
def sequence_construct(c: Call) -> HeldResults:
    """The sequence of its inputs."""
    given = tuple([c.input(i) for i in range(len(c.held))])
    if any(x.dtype is not given[0].dtype for x in given):
        c.fail(f"its inputs are of several types: {', '.join(map(repr, given))}", UNFIT)
    return TensorSequence(given, given[0].dtype)


@translates("SequenceEmpty", holds=True)
def sequence_empty(c: Call) -> HeldResults:
    """A sequence of no tensors."""
    return TensorSequence((), element_type(c.integer("dtype", 0), c.source) if "dtype" in c.attributes else f32)


@translates("SequenceInsert", holds=True, limits=_LATE)
def sequence_insert(c: Call) -> HeldResults:
    """The sequence with a tensor before the one at a position, or at its end."""
    found, x = c.sequence(0), c.input(1)
    if x.dtype is not found.dtype:
        c.fail(f"it puts {x!r} into {found!r}", UNFIT)
    count = len(found.elements)
    at = int(c.number_at(2, "the position")) if c.has(2) else count
    at = at if at == count else _checked(c, at, count)
    return TensorSequence((*found.elements[:at], x, *found.elements[at:]), found.dtype)


@translates("SequenceErase", holds=True, limits=_LATE)
def sequence_erase(c: Call) -> HeldResults:
    """The sequence without the tensor at a position, or without its last."""
    found = c.sequence(0)
    count = len(found.elements)
    at = _position(c, 1, count) if c.has(1) else _checked(c, -1, count)
    return TensorSequence((*found.elements[:at], *found.elements[at + 1 :]), found.dtype)


@translates("SequenceAt", holds=True, limits=_LATE)
def sequence_at(c: Call) -> HeldResults:
    """The tensor at a position."""
    found = c.sequence(0)
    return found.elements[_position(c, 1, len(found.elements))]


@translates("SequenceLength", holds=True)
def sequence_length(c: Call) -> HeldResults:
    """The number of tensors."""
    return c.scalar(len(c.sequence(0).elements), i64)


def _position(c: Call, i: int, count: int) -> int:
    """Returns the position below *count* that input *i* is."""
    return _checked(c, int(c.number_at(i, "the position")), count)


def _checked(c: Call, at: int, count: int) -> int:
    """Returns a position counted from the front; raises `ModelError` for one that is none of *count*."""
    if not -count <= at < count:
        c.fail(f"its position is {at}, and there are {count}", UNFIT)
    return at % count


@translates("SplitToSequence", holds=True, limits="axes of symbolic size, and sizes of pieces that only a run tells")
def split_to_sequence(c: Call) -> HeldResults:
    """Pieces of a tensor along an axis: of sizes given, or single slices, whose axis is dropped unless `keepdims`."""
    x = c.input(0)
    axis = c.axis(0, x.rank)
    if not c.has(1) and not c.flag("keepdims", True):
        count = steps_of(c, x.shape[axis], '{"x": (4, 8)}')
        return TensorSequence(tuple([element(c, x, axis, k) for k in range(count)]), x.dtype)
    if not c.is_known(1) and c.input(1).rank == 1:
        return TensorSequence(late_shapes.split_late(c, x, axis, c.input(1)), x.dtype)
    sizes = _piece_sizes(c, x, axis)
    return TensorSequence(c.add_many("split", x, axis=axis, sizes=tuple(sizes)), x.dtype)


def _piece_sizes(c: Call, x: Operand, axis: int) -> list[int]:
    """Returns the sizes of the pieces: one number is that of all but a smaller last one."""
    given = c.known(1, "the sizes of the pieces") if c.has(1) else None
    if given is not None and given.ndim:
        return c.ints_at(1, "the sizes of the pieces")
    known = static_sizes([x.shape[axis]])
    if known is None:
        c.fail(f"the size of its axis {axis} is symbolic", 'give it a number: shapes={"x": (4, 8)}')
    total, piece = known[0], 1 if given is None else int(c.number_at(1, "the size of the pieces"))
    if piece < 1 or total < 1:
        c.fail(f"pieces of {piece} of an axis of {total} elements", UNFIT)
    return [min(piece, total - begin) for begin in range(0, total, piece)]


@translates("ConcatFromSequence", holds=True)
def concat_from_sequence(c: Call) -> HeldResults:
    """The tensors one after another along an axis, which is a new one with `new_axis`."""
    parts = c.sequence(0).elements
    if not parts:
        c.fail("its sequence is empty", UNFIT)
    if c.flag("new_axis", False):
        return stack(c, parts, c.axis(0, parts[0].rank + 1))
    return concat(c, parts, c.axis(0, parts[0].rank))


@translates("Optional", holds=True)
def optional(c: Call) -> HeldResults:
    """Its input as an optional value; without one, a value that is absent."""
    found = _held(c)
    if isinstance(found, Absent):
        return ABSENT
    kind, tensor, _ = kind_of(c.attributes["type"]) if "type" in c.attributes else ("", None, True)
    if kind and tensor is not None and (kind == "sequence_type") != isinstance(found, TensorSequence):
        c.fail(f"its attribute 'type' is a {kind.removesuffix('_type')}, and its input is {found!r}", UNFIT)
    return found


@translates("OptionalHasElement", holds=True)
def optional_has_element(c: Call) -> HeldResults:
    """Tells whether an optional value holds anything."""
    return c.scalar(not isinstance(_held(c), Absent), bool_)


@translates("OptionalGetElement", holds=True)
def optional_get_element(c: Call) -> HeldResults:
    """What an optional value holds."""
    found = _held(c)
    if isinstance(found, Absent):
        c.fail("its input is absent", "ask OptionalHasElement first")
    return found


def _held(c: Call) -> Held:
    found = c.held[0] if c.held else None
    return ABSENT if found is None else found
