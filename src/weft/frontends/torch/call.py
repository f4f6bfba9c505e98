"""One node of an exported program being imported: its arguments, by the names of the operator's schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from weft.graph import Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator, static_sizes
from weft.graph.composites.numerics.random_numbers import RandomStream
from weft.ir import ONE, Expr
from weft.ops import settled
from weft.support.dtypes import SCALARS, DType
from weft.support.errors import ModelError, UnknownValues

DTYPES: Final[dict[torch.dtype, DType]] = {
    torch.float32: SCALARS["f32"],
    torch.float64: SCALARS["f64"],
    torch.float16: SCALARS["f16"],
    torch.bfloat16: SCALARS["bf16"],
    torch.bool: SCALARS["bool"],
    torch.int8: SCALARS["i8"],
    torch.int16: SCALARS["i16"],
    torch.int32: SCALARS["i32"],
    torch.int64: SCALARS["i64"],
    torch.uint8: SCALARS["u8"],
}

RANDOM_STREAM: Final = "a stream of random numbers"
"""The argument, beside those of a schema, that is a function which returns such a stream."""


def element_type(dtype: torch.dtype, where: str) -> DType:
    """Returns Weft's type for PyTorch's; raises `ModelError` naming *where* for one that Weft lacks."""
    found = DTYPES.get(dtype)
    if found is None:
        hint = f"the element types are {', '.join(t.name for t in DTYPES.values())}"
        raise ModelError(f"elements of type {dtype} are not supported", where=where, hint=hint)
    return found


def common_shape(shapes: Sequence[Sequence[Expr]]) -> tuple[Expr, ...]:
    """Returns the shape that tensors of *shapes* broadcast to."""
    rank = max(map(len, shapes))
    tall = [[ONE] * (rank - len(shape)) + list(shape) for shape in shapes]
    return tuple([next((s for s in sizes if s is not ONE), ONE) for sizes in zip(*tall, strict=True)])


class Call(Builder):
    """A call of an operator: a translation asks it for arguments by name, and adds Weft operators through it.

    `dtype` is the element type of the (first) result, and `operand_dtype` the one that PyTorch computes with: that to which the
    arguments `self` and `other` are promoted.
    """

    def __init__(
        self,
        evaluator: PartialEvaluator,
        source: str,
        arguments: Mapping[str, Any],
        dtype: DType | None,
        operand_dtype: DType | None,
    ) -> None:
        super().__init__(evaluator, source)
        self.arguments = arguments
        self._dtype = dtype
        self._operand_dtype = operand_dtype

    @property
    def dtype(self) -> DType:
        """The element type of the result."""
        assert self._dtype is not None  # translations ask for it where the operator returns a tensor
        return self._dtype

    @property
    def operand_dtype(self) -> DType:
        """The element type to which both operands of a comparison are promoted."""
        assert self._operand_dtype is not None
        return self._operand_dtype

    def random_stream(self) -> RandomStream:
        """Returns a stream of random numbers of its own."""
        drawn: RandomStream = self.arguments[RANDOM_STREAM]()
        return drawn

    def optional(self, name: str) -> Operand | None:
        """Returns a tensor argument, or None where it is absent."""
        found = self.arguments.get(name)
        return found if isinstance(found, Value | CompileTimeConstant) else None

    def tensor(self, name: str = "self", rank: int | None = None) -> Operand:
        """Returns a tensor argument; raises `ModelError` where it is absent, or not of *rank* dimensions."""
        found = self.optional(name)
        if found is None:
            self.fail(f"its argument {name!r} is {self.arguments.get(name)!r}, not a tensor")
        if rank is not None and found.rank != rank:
            self.fail(
                f"its argument {name!r} should have {rank} dimensions: {found!r}",
                "give the exported module inputs with a batch",
            )
        return found

    def tensors(self, name: str) -> list[Operand]:
        """Returns an argument that is a list of tensors."""
        return list(self.arguments[name])

    def operand(self, name: str, dtype: DType) -> Operand:
        """Returns a tensor or a number as *dtype*."""
        found = self.optional(name)
        return self.scalar(self.arguments[name], dtype) if found is None else self.cast(found, dtype)

    def value(self, name: str, default: Any = None) -> Any:
        """Returns an argument that is a number, a truth value or a text; *default* where it is absent."""
        found = self.arguments.get(name)
        if isinstance(found, Value | CompileTimeConstant):
            found = self._size(found)
        return default if found is None else found

    def integer(self, name: str, default: int | None = None) -> int:
        """Returns an integer; raises `UnknownValues` for one that depends on symbolic sizes."""
        found = self.value(name, default)
        if isinstance(found, Expr):
            self.fail(f"its argument {name!r} depends on symbolic sizes", "export it with static shapes", UnknownValues)
        return int(found)

    def sizes(self, name: str) -> list[Any]:
        """Returns a list of sizes: integers and index expressions."""
        return [self._size(v) if isinstance(v, Value | CompileTimeConstant) else v for v in self.arguments[name]]

    def _size(self, v: Operand) -> Any:
        if isinstance(v, CompileTimeConstant) and v.array.size == 1:
            return settled(v.array.item())
        return self.fail(
            "one of its arguments is computed when the model runs", "export it with static shapes", UnknownValues
        )

    def sizes_of(self, x: Operand) -> tuple[int, ...]:
        """Returns the shape of a tensor; raises `UnknownValues` for one of symbolic sizes."""
        found = static_sizes(x.shape)
        if found is None:
            self.fail(f"{x!r} of symbolic size is not supported", "give it numbers in `shapes`", UnknownValues)
        return tuple(found)

    def ints(self, name: str, count: int, default: int = 0) -> list[int]:
        """Returns *count* integers, which the program may give as one, or (*default* for all) leave out."""
        found = self.arguments.get(name)
        given = [default] if found is None or found == [] else found if isinstance(found, Sequence) else [found]
        return [int(v) for v in given] * (count if len(given) == 1 else 1)

    def axis(self, name: str, rank: int) -> int:
        """Returns an axis counted from the front; a number, of no dimensions, takes 0 and -1."""
        return self.axis_of(self.integer(name), max(rank, 1))

    def axes(self, name: str, rank: int) -> tuple[int, ...]:
        """Returns axes counted from the front, sorted; all of them where there are none, and none of a number."""
        found = self.arguments.get(name)
        given = range(rank) if found is None or found == [] else [found] if isinstance(found, int) else found
        return tuple(sorted({self.axis_of(a, max(rank, 1)) for a in given} - {rank}))
