"""Constants, conversions, selection, vectors and applied functions: all expressions but the binary operators."""

from __future__ import annotations

from weft.ir.expr.base import Expr, Value
from weft.ir.expr.node import APPLIES, SELECTS, node
from weft.ir.expr.pure_functions import INTRINSICS
from weft.support.dtypes import DType
from weft.support.errors import TypeMismatch


@node
class Const(Expr):
    """A scalar constant: a bool, an int in the type's range, or a float that the type represents exactly.

    Of a storage type there is one, 0, whose bits are all zero: it is for lanes that nothing reads.
    """

    value: Value
    dtype: DType

    def check(self) -> None:
        """Refuses a Python value of another kind than the type, and all but no bits of a type that is only held and moved."""
        if self.dtype.is_storage and self.value:
            raise TypeMismatch(f"there is no constant {self.value!r} of {self.dtype}", hint="reinterpret one of u8")
        if type(self.value) is not (float if self.dtype.is_float else bool if self.dtype.is_bool else int):
            raise TypeMismatch(f"the constant {self.value!r} is not of type {self.dtype}", hint="build it with const()")
        if self.dtype.lanes != 1:
            raise TypeMismatch(f"a constant is a scalar, not {self.dtype}", hint="broadcast it")


@node
class Neg(Expr):
    """`-a`; of a float it flips the sign bit, of zero too."""

    __derived__ = ("dtype",)
    a: Expr

    def derive(self) -> tuple[DType]:
        """Returns the operand's type."""
        return (self.a.dtype,)


@node
class Not(Expr):
    """`not a` of a bool; the bitwise complement of an integer."""

    __derived__ = ("dtype",)
    a: Expr

    def derive(self) -> tuple[DType]:
        """Returns the operand's type."""
        return (self.a.dtype,)


@node
class Select(Expr):
    """*then* where *cond* holds, else *other*; only the chosen one is evaluated, lane by lane."""

    __derived__ = ("dtype",)
    trait = SELECTS
    cond: Expr
    then: Expr
    other: Expr

    def derive(self) -> tuple[DType]:
        """Returns the type of both branches; a scalar condition chooses whole vectors."""
        cond, then, other = self.cond.dtype, self.then.dtype, self.other.dtype
        if not cond.is_bool or then is not other or cond.lanes not in (1, then.lanes):
            raise TypeMismatch(f"select takes a bool and two values of one type, not {cond}, {then}, {other}")
        return (then,)


@node
class Cast(Expr):
    """*a* converted to another element type: floats to integers towards zero, anything to bool by `!= 0`."""

    a: Expr
    dtype: DType

    def check(self) -> None:
        """Refuses to change the number of lanes, and types that are only held and moved."""
        if self.a.dtype.is_storage or self.dtype.is_storage:
            raise TypeMismatch(
                f"a cast does not convert {self.a.dtype} to {self.dtype}", hint="use the operators decode and encode"
            )
        if self.a.dtype.lanes != self.dtype.lanes:
            raise TypeMismatch(f"a cast keeps the lanes: {self.a.dtype} to {self.dtype}")


@node
class Reinterpret(Expr):
    """The bits of *a* read as another type of the same width."""

    a: Expr
    dtype: DType

    def check(self) -> None:
        """Refuses types of another size."""
        if self.a.dtype.bits * self.a.dtype.lanes != self.dtype.bits * self.dtype.lanes:
            raise TypeMismatch(f"the bits of {self.a.dtype} do not fill {self.dtype}")


@node
class Ramp(Expr):
    """The vector `base, base + stride, base + 2 * stride, ...` of *lanes* integers."""

    __derived__ = ("dtype",)
    base: Expr
    stride: Expr
    lanes: int

    def derive(self) -> tuple[DType]:
        """Returns the base's type with *lanes* lanes."""
        if self.base.dtype is not self.stride.dtype or self.base.dtype.lanes != 1:
            raise TypeMismatch(f"a ramp is of scalars of one type, not {self.base.dtype} and {self.stride.dtype}")
        return (self.base.dtype.with_lanes(self.lanes),)


@node
class Broadcast(Expr):
    """The scalar *value* in each of *lanes* lanes."""

    __derived__ = ("dtype",)
    value: Expr
    lanes: int

    def derive(self) -> tuple[DType]:
        """Returns the value's type with *lanes* lanes."""
        if self.value.dtype.lanes != 1:
            raise TypeMismatch(f"only a scalar can be broadcast, not {self.value.dtype}")
        return (self.value.dtype.with_lanes(self.lanes),)


@node
class Shuffle(Expr):
    """The lanes *picks* of the vector *a* followed by the vector *b*."""

    __derived__ = ("dtype",)
    a: Expr
    b: Expr
    picks: tuple[int, ...]

    def derive(self) -> tuple[DType]:
        """Returns the operands' type with a lane for each pick; raises `TypeMismatch` for picks that they do not have."""
        lanes = self.a.dtype.lanes
        if self.a.dtype is not self.b.dtype or lanes == 1:
            raise TypeMismatch(f"a shuffle takes two vectors of one type, not {self.a.dtype} and {self.b.dtype}")
        if len(self.picks) < 2 or not all(0 <= p < 2 * lanes for p in self.picks):
            raise TypeMismatch(f"a shuffle of {self.a.dtype} picks two or more of {2 * lanes} lanes, not {self.picks}")
        return (self.a.dtype.with_lanes(len(self.picks)),)


@node
class Apply(Expr):
    """A pure function of `ir.expr.pure_functions` applied to operands of one type."""

    trait = APPLIES
    __derived__ = ("dtype",)
    fn: str
    args: tuple[Expr, ...]

    def derive(self) -> tuple[DType]:
        """Returns the declared type of the result; raises `TypeMismatch` for operands the function does not take."""
        known = INTRINSICS.get(self.fn)
        if known is None or known.arity != len(self.args):
            raise TypeMismatch(f"there is no function {self.fn} of {len(self.args)} operands")
        operand = self.args[0].dtype
        if any(x.dtype is not operand for x in self.args) or not known.accepts(operand):
            raise TypeMismatch(f"{self.fn} does not take {', '.join(x.dtype.name for x in self.args)}")
        return (known.result(operand),)
