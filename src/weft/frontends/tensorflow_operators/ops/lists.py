"""Lists of tensors, in which loops keep the rows of their sequences (TensorFlow's TensorList)."""

from __future__ import annotations

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, ListOfTensors, Results
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Operand
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
    x = c.tensor(0)
    return ListOfTensors(x.dtype, x, c.cast(c.size(x.shape[0]), i32))


@translates("TensorListStack")
def stack(c: Call) -> Results:
    """A list's tensors along a new first dimension."""
    return _elements(c)


@translates("TensorListLength")
def length(c: Call) -> Results:
    """The number of a list's tensors."""
    return c.cast(_list(c).count, i32)


@translates("TensorListGetItem")
def get_item(c: Call) -> Results:
    """One of a list's tensors."""
    return c.add("gather", _elements(c), c.reshape(c.tensor(1), []), axis=0)


@translates("TensorListSetItem")
def set_item(c: Call) -> Results:
    """The list with another tensor at a place."""
    whole, item = _list(c), c.tensor(2)
    if whole.elements is None:
        whole = whole.of_zeros(c, item.shape)
    assert whole.elements is not None
    place = c.reshape(c.tensor(1), [1, 1])
    made = c.add("scatter_nd", whole.elements, place, c.reshape(item, [1, *item.shape]), reduction="none")
    return ListOfTensors(whole.dtype, made, whole.count)


def _list(c: Call) -> ListOfTensors:
    found = c.inputs[0] if c.inputs else None
    if not isinstance(found, ListOfTensors):
        c.fail(f"its input 0 is {found!r}, not a list of tensors", SAVE_AGAIN)
    return found


def _elements(c: Call) -> Operand:
    found = _list(c).elements
    if found is None:
        c.fail("nothing was put into its list of tensors", SAVE_AGAIN)
    return found
