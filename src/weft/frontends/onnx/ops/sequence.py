"""Sequences and optional values: none is left in the graph, whether their structure is known while a model is imported or not."""

from __future__ import annotations

from weft.cost import MOST_SEQUENCE_STEPS, MOST_UNROLLED_STEPS
from weft.frontends.onnx.call import Call, Held, HeldResults, Operand
from weft.frontends.onnx.file.tensors import element_type
from weft.frontends.onnx.held import ABSENT, Absent, AnySequence, LateOptional, TensorSequence, kind_of
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.graph.builder import static_sizes
from weft.graph.composites.run_time import late_sequences, late_shapes
from weft.graph.composites.run_time.late_sequences import LateSequence
from weft.graph.composites.sequences import concat, element, few_steps, stack
from weft.ir import INDEX, as_expr, eq
from weft.support.dtypes import bool_, f32, i64


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


@translates("SequenceInsert", holds=True)
def sequence_insert(c: Call) -> HeldResults:
    """The sequence with a tensor before the one at a position, or at its end."""
    found, x = c.sequence(0), c.input(1)
    if x.dtype is not found.dtype:
        c.fail(f"it puts {x!r} into {found!r}", UNFIT)
    if isinstance(found, LateSequence) or not c.is_known(2):
        return late_sequences.inserted(c, _late(c, found, x.rank), x, c.optional(2))
    count = len(found.elements)
    at = int(c.number_at(2, "the position")) if c.has(2) else count
    at = at if at == count else _checked(c, at, count)
    return TensorSequence((*found.elements[:at], x, *found.elements[at:]), found.dtype)


def _late(c: Call, s: AnySequence, rank: int | None = None) -> LateSequence:
    """Returns a sequence as one that a run tells more of."""
    return s if isinstance(s, LateSequence) else late_sequences.sequence_of(c, s.elements, s.dtype, rank)


@translates("SequenceErase", holds=True)
def sequence_erase(c: Call) -> HeldResults:
    """The sequence without the tensor at a position, or without its last."""
    found = c.sequence(0)
    if isinstance(found, LateSequence) or not c.is_known(1):
        return late_sequences.erased(c, _late(c, found), c.input(1) if c.has(1) else c.scalar(-1, i64))
    count = len(found.elements)
    at = _position(c, 1, count) if c.has(1) else _checked(c, -1, count)
    return TensorSequence((*found.elements[:at], *found.elements[at + 1 :]), found.dtype)


@translates(
    "SequenceAt",
    holds=True,
    limits="tensors whose number of dimensions nothing tells or declares",
)
def sequence_at(c: Call) -> HeldResults:
    """The tensor at a position."""
    found = c.sequence(0)
    if isinstance(found, LateSequence) or not c.is_known(1):
        return late_sequences.tensor_at(c, _late(c, found), c.input(1), c.declared_rank)
    return found.elements[_position(c, 1, len(found.elements))]


@translates("SequenceLength", holds=True)
def sequence_length(c: Call) -> HeldResults:
    """The number of tensors."""
    found = c.sequence(0)
    return c.size(found.count) if isinstance(found, LateSequence) else c.scalar(len(found.elements), i64)


def _position(c: Call, i: int, count: int) -> int:
    """Returns the position below *count* that input *i* is."""
    return _checked(c, int(c.number_at(i, "the position")), count)


def _checked(c: Call, at: int, count: int) -> int:
    """Returns a position counted from the front; raises `ModelError` for one that is none of *count*."""
    if not -count <= at < count:
        c.fail(f"its position is {at}, and there are {count}", UNFIT)
    return at % count


@translates("SplitToSequence", holds=True)
def split_to_sequence(c: Call) -> HeldResults:
    """Pieces of a tensor along an axis: of sizes given, or single slices, whose axis is dropped unless `keepdims`."""
    x = c.input(0)
    axis = c.axis(0, x.rank)
    if not c.has(1) and not c.flag("keepdims", True):
        return _slices(c, x, axis)
    if not c.is_known(1) and c.input(1).rank == 1:
        return _late_pieces(c, x, axis, c.input(1))
    if c.has(1) and c.input(1).rank == 1:
        sizes = c.ints_at(1, "the sizes of the pieces")
    elif c.is_known(1) and (total := static_sizes([x.shape[axis]])) is not None:
        sizes = _equal_sizes(c, total[0])
    else:
        piece = c.input(1) if c.has(1) else c.scalar(1, i64)
        return late_sequences.split_in(c, x, axis, late_sequences.equal_pieces(c, x.shape[axis], piece))
    return TensorSequence(c.add_many("split", x, axis=axis, sizes=tuple(sizes)), x.dtype)


def _slices(c: Call, x: Operand, axis: int) -> AnySequence:
    """Returns the elements along an axis, which they lack."""
    count = few_steps(x.shape[axis], MOST_SEQUENCE_STEPS)
    if count:
        return TensorSequence(tuple([element(c, x, axis, k) for k in range(count)]), x.dtype)
    rows = c.transpose(x, [axis, *range(axis), *range(axis + 1, x.rank)])
    return late_sequences.rows_of(c, rows)


def _late_pieces(c: Call, x: Operand, axis: int, sizes: Operand) -> AnySequence:
    """Returns pieces whose sizes a run tells, and perhaps how many there are."""
    sizes = c.cast(sizes, i64)
    known = static_sizes(sizes.shape)
    if known is not None and known[0] <= MOST_UNROLLED_STEPS:
        return TensorSequence(late_shapes.split_late(c, x, axis, sizes), x.dtype)
    return late_sequences.split_in(c, x, axis, sizes)


def _equal_sizes(c: Call, total: int) -> list[int]:
    """Returns the sizes of the pieces: of one element each, or of as many as an input says, but for a smaller last one."""
    piece = int(c.number_at(1, "the size of the pieces")) if c.has(1) else 1
    if piece < 1 or total < 1:
        c.fail(f"pieces of {piece} of an axis of {total} elements", UNFIT)
    return [min(piece, total - begin) for begin in range(0, total, piece)]


@translates(
    "ConcatFromSequence",
    holds=True,
    limits="tensors whose number of dimensions nothing tells or declares",
)
def concat_from_sequence(c: Call) -> HeldResults:
    """The tensors one after another along an axis, which is a new one with `new_axis`."""
    found, axis, new = c.sequence(0), c.integer("axis", 0), c.flag("new_axis", False)
    if isinstance(found, LateSequence):
        return (late_sequences.stacked if new else late_sequences.concatenated)(c, found, axis, c.declared_rank)
    parts = found.elements
    if not parts:
        c.fail("its sequence is empty", UNFIT)
    if new:
        return stack(c, parts, c.axis_of(axis, parts[0].rank + 1))
    return concat(c, parts, c.axis_of(axis, parts[0].rank))


@translates("Optional", holds=True)
def optional(c: Call) -> HeldResults:
    """Its input as an optional value; without one, a value that is absent."""
    found = _held(c)
    if isinstance(found, Absent):
        return ABSENT
    kind, tensor, _ = kind_of(c.attributes["type"]) if "type" in c.attributes else ("", None, True)
    if kind and tensor is not None and (kind == "sequence_type") != isinstance(found, AnySequence):
        c.fail(f"its attribute 'type' is a {kind.removesuffix('_type')}, and its input is {found!r}", UNFIT)
    return found


@translates("OptionalHasElement", holds=True)
def optional_has_element(c: Call) -> HeldResults:
    """Tells whether an optional value holds anything."""
    found = _held(c)
    return found.present if isinstance(found, LateOptional) else c.scalar(not isinstance(found, Absent), bool_)


@translates("OptionalGetElement", holds=True)
def optional_get_element(c: Call) -> HeldResults:
    """The contents of an optional value."""
    found = _held(c)
    if isinstance(found, Absent):
        c.fail("its input is absent", "ask OptionalHasElement first")
    if not isinstance(found, LateOptional):
        return found
    present = as_expr(c.late_number(c.cast(found.present, i64), "present", "whether its input is there"), INDEX)
    c.require(eq(present, 1), "its input is absent")
    return found.held


def _held(c: Call) -> Held:
    found = c.held[0] if c.held else None
    return ABSENT if found is None else found
