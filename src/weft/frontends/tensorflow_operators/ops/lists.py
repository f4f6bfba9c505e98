"""Lists of tensors, in which loops keep the rows of their sequences (TensorFlow's TensorList, and its older TensorArray).

A TensorArray is a handle and a flow of its elements: the flow is the list, and the handle that at first, which nobody reads.
"""

from __future__ import annotations

import numpy as np

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, ListOfTensors, Results
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import CompileTimeConstant, Operand, static_sizes
from weft.support.dtypes import i32, i64


@translates("TensorListReserve", "EmptyTensorList")
def reserve(c: Call) -> Results:
    """A list of tensors that are put in later, all of one shape, which the first of them tells; none or some at first."""
    made = ListOfTensors(c.dtype("element_dtype"), None, c.scalar(0, i32) if c.op == "EmptyTensorList" else c.tensor(1))
    if c.is_known(0):
        shape = c.sizes(0, "the shape of the list's tensors")
        if not any(isinstance(s, int) and s < 0 for s in shape) and c.tensor(0).rank == 1:
            return made.of_zeros(c, shape)
    return made


@translates("TensorListFromTensor")
def from_tensor(c: Call) -> Results:
    """The list of a tensor's elements along its first dimension."""
    return ListOfTensors.of(c, c.tensor(0))


@translates("TensorListStack")
def stack(c: Call) -> Results:
    """A list's tensors along a new first dimension."""
    return _elements(c)


@translates("TensorListLength", "TensorArraySizeV3")
def length(c: Call) -> Results:
    """The number of a list's tensors."""
    return c.cast(_list(c).count, i32)


@translates("TensorListGetItem", "TensorArrayReadV3")
def get_item(c: Call) -> Results:
    """One of a list's tensors."""
    return c.add("gather", _elements(c), c.reshape(c.tensor(1), []), axis=0)


@translates("TensorListSetItem", "TensorArrayWriteV3")
def set_item(c: Call) -> Results:
    """The list with another tensor at a place, which may be behind its last one if it grows."""
    place, item = c.reshape(c.tensor(1), [1]), c.reshape(c.tensor(2), [1, *c.tensor(2).shape])
    if c.flag("resize_if_index_out_of_bounds"):
        return put(c, _long_enough(c, _list(c), place, item), place, item)
    return _with(c, place, item)


def _long_enough(c: Call, whole: ListOfTensors, place: Operand, item: Operand) -> ListOfTensors:
    """Returns a list that has zeros behind its last tensor up to a *place*."""
    before = whole.elements if whole.elements is not None else whole.of_zeros(c, item.shape[1:]).elements
    assert before is not None
    behind = c.add("sub", c.cast(c.reshape(place, []), i64), c.size(before.shape[0] - 1))
    more = c.late_number(c.add("maximum", behind, c.scalar(0, i64)), "more", "how many tensors a list gets")
    if isinstance(more, int) and not more:
        return ListOfTensors.of(c, before)
    zeros = c.add("full", shape=(more, *before.shape[1:]), value=0, dtype=before.dtype)
    return ListOfTensors.of(c, zeros if _is_empty(before) else c.add("concat", before, zeros, axis=0))


def _is_empty(x: Operand) -> bool:
    return static_sizes(x.shape[:1]) == [0]


@translates("TensorListPushBack")
def push_back(c: Call) -> Results:
    """The list with one more tensor at its end."""
    item = c.reshape(c.tensor(1), [1, *c.tensor(1).shape])
    before = _list(c).elements
    return ListOfTensors.of(c, item if before is None or _is_empty(before) else c.add("concat", before, item, axis=0))


@translates("TensorListPopBack", outputs=("output_handle", "tensor"))
def pop_back(c: Call) -> Results:
    """The list without its last tensor, and that."""
    whole = _elements(c)
    rest = c.add("slice", whole, starts=(0,), ends=(-1,), axes=(0,), steps=(1,))
    last = c.add("slice", whole, starts=(-1,), ends=(2**62,), axes=(0,), steps=(1,))
    return ListOfTensors.of(c, rest), c.reshape(last, whole.shape[1:])


@translates("TensorListConcatV2", "TensorArrayConcatV3", outputs=("tensor", "lengths"))
def joined(c: Call) -> Results:
    """A list's tensors one after another along their first dimension, and the sizes of that."""
    whole = _elements(c)
    if whole.rank < 2:
        c.fail("its tensors are numbers", SAVE_AGAIN)
    count, each = whole.shape[:2]
    lengths = c.add("expand", c.size(each), shape=(count,))
    return c.reshape(whole, [count * each, *whole.shape[2:]]), lengths


@translates("TensorListSplit", "TensorArraySplitV3")
def split(c: Call) -> Results:
    """The list of a tensor's pieces along its first dimension, all of one size."""
    given, lengths = c.tensor(0 if c.op == "TensorListSplit" else 1), c.ints_at(2, "the sizes")
    if not lengths or len(set(lengths)) > 1:
        c.fail(f"it makes pieces of {lengths} rows; those of lists are of one size", "split it into equal pieces")
    return ListOfTensors.of(c, c.reshape(given, [len(lengths), lengths[0], *given.shape[1:]]))


@translates("TensorListElementShape")
def element_shape(c: Call) -> Results:
    """The shape of a list's tensors."""
    return c.cast(c.vector(_elements(c).shape[1:]), c.dtype("shape_type", i32))


@translates("TensorArrayV3", outputs=("handle", "flow"))
def array(c: Call) -> Results:
    """A list of so many tensors, and its flow."""
    made = ListOfTensors(c.dtype("dtype"), None, c.tensor(0))
    if c.flag("dynamic_size"):
        c.fail("lists that grow are not supported", "give TensorArrays a size")
    shape = c.attributes.get("element_shape")
    if isinstance(shape, list) and all(size >= 0 for size in shape):
        made = made.of_zeros(c, shape)
    return made, made


@translates("TensorArrayGatherV3", "TensorListGather")
def gather(c: Call) -> Results:
    """Some of a flow's tensors along a new first dimension."""
    elements, places = _elements(c), c.tensor(1)
    return elements if _are_all(places, elements) else c.add("gather", elements, places, axis=0)


@translates("TensorArrayScatterV3")
def scatter(c: Call) -> Results:
    """A flow with the elements of a tensor, along its first dimension, at some places."""
    places, items = c.tensor(1), c.tensor(2)
    return ListOfTensors.of(c, items) if _are_all(places, items) and _counts(c, items) else _with(c, places, items)


def _list(c: Call) -> ListOfTensors:
    """Returns the list that a node is about: a TensorArray's flow is the last input."""
    at = -1 if c.op.startswith("TensorArray") else 0
    found = c.inputs[at] if c.inputs else None
    if not isinstance(found, ListOfTensors):
        c.fail(f"its input {at % max(len(c.inputs), 1)} is {found!r}, not a list of tensors", SAVE_AGAIN)
    return found


def _elements(c: Call) -> Operand:
    found = _list(c).elements
    if found is None:
        c.fail("nothing was put into its list of tensors", SAVE_AGAIN)
    return found


def _with(c: Call, places: Operand, items: Operand) -> ListOfTensors:
    """Returns a node's list with other tensors at some places."""
    return put(c, _list(c), places, items)


def put(c: Call, whole: ListOfTensors, places: Operand, items: Operand) -> ListOfTensors:
    """Returns a list with other tensors at some places."""
    if whole.elements is None:
        whole = whole.of_zeros(c, items.shape[1:])
    assert whole.elements is not None
    made = c.add("scatter_nd", whole.elements, c.reshape(places, [*places.shape, 1]), items, reduction="none")
    return ListOfTensors(whole.dtype, made, whole.count)


def _are_all(places: Operand, elements: Operand) -> bool:
    """Tells whether places are known to be those of all elements, in their order."""
    if not isinstance(places, CompileTimeConstant) or places.symbolic or places.rank != 1:
        return False
    return static_sizes(elements.shape[:1]) == [places.array.size] and bool(
        (places.array == np.arange(places.array.size)).all()
    )


def _counts(c: Call, items: Operand) -> bool:
    """Tells whether a node's list is known to have as many tensors as *items* has."""
    count = _list(c).count
    return isinstance(count, CompileTimeConstant) and static_sizes(items.shape[:1]) == [*count.array.reshape(-1)]
