"""One operation being imported: its operands, attributes, regions, and the types of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from weft.frontends.jax.dense_constants import DamagedConstant, splat_or_array
from weft.frontends.jax.text.attribute_values import Dense
from weft.frontends.jax.text.operations import Operation, TensorText, tensor_type
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator, static_sizes
from weft.ir import Const, Expr
from weft.support.dtypes import DType
from weft.support.errors import UnknownValues

AGAIN: Final = "lower the function again"
LARGEST: Final = 1 << 40
"""The largest integer among attributes: larger than any size of a tensor."""


class Program(Protocol):
    """The module that operations are imported from."""

    resources: Mapping[str, str]

    def run(self, function: str, given: Sequence[Operand], b: Builder) -> list[Operand]:
        """Returns the results of a function of the module."""

    def reducer(self, function: str) -> str | None:
        """Returns the name of the operation by which a function of the module combines two numbers; None if it is none alone."""

    def run_region(
        self, o: Operation, k: int, given: Sequence[Operand], b: Builder, around: Mapping[str, Operand]
    ) -> list[Operand]:
        """Returns the results of region *k* of an operation, of which *around* are the values that it may use."""


class Call(Builder):
    """A call of an operation: a translation asks it for operands and attributes, and adds Weft operators through it.

    `operands` are the operation's, and `around` all values that its regions may use.
    """

    def __init__(
        self, evaluator: PartialEvaluator, o: Operation, source: str, around: Mapping[str, Operand], program: Program
    ) -> None:
        super().__init__(evaluator, source)
        self.operation, self.program, self.around = o, program, around
        self.operands = [around[name] for name in o.operands]

    def operand(self, i: int, rank: int | None = None) -> Operand:
        """Returns an operand; raises `ModelError` where there is none, or it has not *rank* dimensions."""
        if i >= len(self.operands):
            self.fail(f"it has {len(self.operands)} operands", AGAIN)
        found = self.operands[i]
        if rank is not None and found.rank != rank:
            self.fail(f"its operand {i} should have {rank} dimensions: {found!r}", AGAIN)
        return found

    def static(self, x: Operand) -> list[int]:
        """Returns the sizes of *x*; raises `UnknownValues` for symbolic ones."""
        found = static_sizes(x.shape)
        if found is None:
            self.fail(f"it needs sizes that are numbers: {x!r}", "export it with static shapes", UnknownValues)
        return found

    def extents(self, x: Operand) -> list[int | Expr]:
        """Returns the sizes of *x*, as integers where they are numbers."""
        return [int(s.value) if isinstance(s, Const) else s for s in x.shape]

    # attributes

    def value(self, *names: str) -> Any:
        """Returns the attribute of the first of *names* that there is, in the own form or the generic one; None for none."""
        return next((self.operation.attributes[n] for n in names if n in self.operation.attributes), None)

    def integer(self, *names: str) -> int:
        """Returns an integer."""
        found = self.value(*names)
        if not _is_integer(found):
            self.fail(f"its attribute {names[0]} is {found!r}, not an integer", AGAIN)
        return int(found)

    def ints(self, *names: str, default: Sequence[int] | None = None) -> list[int]:
        """Returns a list of integers."""
        found = self.value(*names)
        if found is None and default is not None:
            return list(default)
        return self.integers_of(found, names[0])

    def integers_of(self, found: Any, name: str) -> list[int]:
        """Returns *found* as a list of integers; *name* is that of the attribute in messages."""
        found = getattr(found, "elements", found)
        if not isinstance(found, list) or not all(map(_is_integer, found)):
            self.fail(f"its attribute {name} is {found!r}, not a list of integers", AGAIN)
        return list(found)

    def dims(self, *names: str) -> list[int]:
        """Returns a list of different dimensions, which may be absent."""
        found = self.ints(*names, default=())
        if len(set(found)) != len(found) or min(found, default=0) < 0:
            self.fail(f"its attribute {names[0]} is {found!r}, not a list of dimensions", AGAIN)
        return found

    def word(self, name: str, k: int, known: Sequence[str]) -> str:
        """Returns word *k* of the operation's own form, or the attribute *name*; raises `ModelError` for one not *known*."""
        words = [w for w in self.operation.words if w in known]
        found = self.operation.attributes.get(name, words[k] if k < len(words) else "")
        if isinstance(found, list):
            found = found[-1] if found else ""
        if found not in known:
            self.fail(f"its attribute {name} is {found!r}; it should be one of {', '.join(known)}", AGAIN)
        return str(found)

    def constant_of(self, value: Any) -> Operand:
        """Returns a constant of the text; one number for many elements is not written out."""
        if not isinstance(value, Dense):
            self.fail(f"its value {value!r} is no constant of a tensor", AGAIN)
        try:
            type_, dtype, array = splat_or_array(value, self.program.resources)
        except DamagedConstant as error:
            self.fail(str(error), AGAIN)
        shape = tuple([s or 0 for s in type_.shape])
        made = CompileTimeConstant(array, dtype=dtype)
        return made if array.shape == shape else self.add("expand", made, shape=shape)

    # results

    def result(self, k: int = 0) -> TensorText:
        """Returns the type of a result."""
        types = self.operation.result_types
        found = tensor_type(types[k]) if k < len(types) else None
        if found is None:
            self.fail(f"its result {k} is no tensor: {types[k] if k < len(types) else 'absent'}", AGAIN)
        return found

    def result_shape(self, k: int = 0) -> list[int]:
        """Returns the shape of a result; raises `UnknownValues` where it is not known."""
        found = [s for s in self.result(k).shape if s is not None]
        if len(found) != len(self.result(k).shape):
            self.fail("the shape of its result is not known", "export it with static shapes", UnknownValues)
        return found

    def result_dtype(self, k: int = 0) -> DType:
        """Returns the type of a result's elements; raises `ModelError` for one that Weft lacks."""
        found = self.result(k)
        if found.dtype is None:
            self.fail(f"elements of type {found.element} are not supported", "compute with real numbers")
        return found.dtype

    # regions

    def region(self, k: int, given: Sequence[Operand], b: Builder | None = None) -> list[Operand]:
        """Returns the results of region *k*, whose operators *b* adds: this call unless another is given."""
        return self.program.run_region(self.operation, k, given, b or self, self.around)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST
