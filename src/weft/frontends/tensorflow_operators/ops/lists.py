"""Lists of tensors, in which loops keep the rows of their sequences (TensorFlow's TensorList, and its older TensorArray).

A TensorArray is a handle and a flow of its elements: the flow is the list, and the handle that at first, which nobody reads.
"""

from __future__ import annotations

import numpy as np

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, ListOfTensors, Results
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import CompileTimeConstant, Operand, static_sizes
from weft.support.dtypes import i32


@translates("TensorListReserve", "EmptyTensorList")
def reserve(c: Call) -> Results:
    """A list of tensors that are put in later, all of one shape, which the first of them tells."""
    if c.op == "EmptyTensorList":
        c.fail("lists that grow are not supported", "give TensorArrays a size")
    made = ListOfTensors(c.dtype("element_dtype"), None, c.tensor(1))
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
    """The list with another tensor at a place."""
    return _with(c, c.reshape(c.tensor(1), [1]), c.reshape(c.tensor(2), [1, *c.tensor(2).shape]))


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


@translates("TensorArrayGatherV3")
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
    whole = _list(c)
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
