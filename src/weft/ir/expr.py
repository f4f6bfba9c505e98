"""Scalar (and short-vector) expressions: typed, immutable, interned.

Meaning. Integers wrap in their width, except that overflow of `i32` and `i64` is taken not to happen, as in C.
`FloorDiv` and `FloorMod` round towards minus infinity (Python's `//` and `%`), `TruncDiv` and `TruncMod` towards zero.
`Min` and `Max` of floats propagate NaN. `Select` evaluates only the operand that it chooses (per lane), so a guarded
`Load` never touches memory outside its buffer. `And` and `Or` likewise stop early.

`a + b`, `a // b`, `a < b` and so on build nodes; `==` is Python's own, since a node is compared by identity: use `eq(a, b)` and
`ne(a, b)` for the expressions. An expression has no truth value: `if`, `and`, `min` and the like raise `TypeMismatch`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar, Union

import numpy as np

from weft.ir.intrinsics import INTRINSICS
from weft.ir.node import Node, node
from weft.support.dtypes import DType, bool_, i64
from weft.support.errors import TypeMismatch

ExprLike: TypeAlias = Union["Expr", int, float, bool]
Value: TypeAlias = bool | int | float

INDEX: Final = i64
"""The type of loop variables, extents and buffer indices."""

CHOICES: Final = (
    "Python decides if, and, or, not, min, max and a < b < c while the formula is built; write select(c, a, b), minimum(a, b), "
    "maximum(a, b), a & b, a | b, ~a or all_of([...]), and test for an absent expression by `is None`"
)
"""What to write in place of Python's own choices, which would be made before there are values."""

_WRAPS: Final = 1 << 63
"""Index values from here on wrap."""


class Expr(Node):
    """An expression of type `dtype`."""

    __slots__ = ()
    dtype: DType

    def __bool__(self) -> bool:
        raise TypeMismatch("an expression has no truth value before the program runs", hint=CHOICES)

    def __add__(self, other: ExprLike) -> Expr:
        return binary(Add, self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return binary(Add, as_expr(other, self.dtype), self)

    def __sub__(self, other: ExprLike) -> Expr:
        return binary(Sub, self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return binary(Sub, as_expr(other, self.dtype), self)

    def __mul__(self, other: ExprLike) -> Expr:
        return binary(Mul, self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return binary(Mul, as_expr(other, self.dtype), self)

    def __truediv__(self, other: ExprLike) -> Expr:
        return binary(Div, self, other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return binary(Div, as_expr(other, self.dtype), self)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return binary(FloorDiv, self, other)

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return binary(FloorDiv, as_expr(other, self.dtype), self)

    def __mod__(self, other: ExprLike) -> Expr:
        return binary(FloorMod, self, other)

    def __rmod__(self, other: ExprLike) -> Expr:
        return binary(FloorMod, as_expr(other, self.dtype), self)

    def __and__(self, other: ExprLike) -> Expr:
        return binary(And if self.dtype.is_bool else BitAnd, self, other)

    def __or__(self, other: ExprLike) -> Expr:
        return binary(Or if self.dtype.is_bool else BitOr, self, other)

    def __xor__(self, other: ExprLike) -> Expr:
        return binary(BitXor, self, other)

    def __lshift__(self, other: ExprLike) -> Expr:
        return binary(ShiftLeft, self, other)

    def __rshift__(self, other: ExprLike) -> Expr:
        return binary(ShiftRight, self, other)

    def __neg__(self) -> Expr:
        if self.dtype.is_bool:
            raise TypeMismatch(f"`-` does not take {self.dtype}, only number types")
        return Neg(self)

    def __invert__(self) -> Expr:
        return Not(self)

    def __lt__(self, other: ExprLike) -> Expr:
        return binary(Lt, self, other)

    def __le__(self, other: ExprLike) -> Expr:
        return binary(Le, self, other)

    def __gt__(self, other: ExprLike) -> Expr:
        return binary(Lt, as_expr(other, self.dtype), self)

    def __ge__(self, other: ExprLike) -> Expr:
        return binary(Le, as_expr(other, self.dtype), self)


_SERIAL = itertools.count()


class Var(Expr):
    """A variable, known by identity: two variables of one name are different variables."""

    __slots__ = ("dtype", "name", "serial")
    __match_args__ = ("name", "dtype")
    name: str
    serial: int  # order of creation, which makes sorted forms deterministic

    def __init__(self, name: str, dtype: DType = INDEX) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "serial", next(_SERIAL))

    def children(self) -> tuple[Node, ...]:
        """Returns nothing: a variable is a leaf."""
        return ()

    def rebuild(self, kids: Iterable[Node]) -> Node:
        """Returns the variable itself."""
        return self

    def __repr__(self) -> str:
        return f"Var({self.name}: {self.dtype})"


@node
class Const(Expr):
    """A scalar constant: a bool, an int in the type's range, or a float that the type represents exactly."""

    value: Value
    dtype: DType

    def check(self) -> None:
        """Refuses a Python value of another kind than the type."""
        if type(self.value) is not (float if self.dtype.is_float else bool if self.dtype.is_bool else int):
            raise TypeMismatch(f"the constant {self.value!r} is not of type {self.dtype}", hint="build it with const()")
        if self.dtype.lanes != 1:
            raise TypeMismatch(f"a constant is a scalar, not {self.dtype}", hint="broadcast it")


class Binary(Expr):
    """An operator of two operands of one type; `symbol` is its text form, `numpy` its reference meaning."""

    __slots__ = ()
    symbol: ClassVar[str]
    numpy: ClassVar[Any]
    precedence: ClassVar[int]
    commutative: ClassVar[bool] = False
    kinds: ClassVar[str] = "number"  # which operand types it takes: number, int, float, bool, any
    a: Expr
    b: Expr

    if TYPE_CHECKING:

        def __init__(self, a: Expr, b: Expr) -> None: ...

    def derive(self) -> tuple[DType]:
        """Returns the result's type, which is the operands'; raises `TypeMismatch` where they differ."""
        return (_operand_type(self),)


class Comparison(Binary):
    """A comparison, which answers a bool for each lane."""

    __slots__ = ()
    precedence = 4

    def derive(self) -> tuple[DType]:
        """Returns bool, with the operands' lanes."""
        return (bool_.with_lanes(_operand_type(self).lanes),)


_ALLOWED: Final[dict[str, Callable[[DType], bool]]] = {
    "number": lambda t: t.is_int or t.is_float,
    "int": lambda t: t.is_int,
    "float": lambda t: t.is_float,
    "bool": lambda t: t.is_bool,
    "any": lambda t: True,
}


def _operand_type(e: Binary) -> DType:
    dtype = e.a.dtype
    if dtype is not e.b.dtype:
        raise TypeMismatch(
            f"`{e.symbol}` takes two operands of one type, not {dtype} and {e.b.dtype}", hint="cast one of them"
        )
    if not _ALLOWED[e.kinds](dtype):
        raise TypeMismatch(f"`{e.symbol}` does not take {dtype}, only {e.kinds} types")
    return dtype


@node
class Add(Binary):
    """`a + b`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, commutative = "+", np.add, 6, True
    a: Expr
    b: Expr


@node
class Sub(Binary):
    """`a - b`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence = "-", np.subtract, 6
    a: Expr
    b: Expr


@node
class Mul(Binary):
    """`a * b`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, commutative = "*", np.multiply, 7, True
    a: Expr
    b: Expr


@node
class Div(Binary):
    """`a / b` of floats."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "/", np.divide, 7, "float"
    a: Expr
    b: Expr


@node
class FloorDiv(Binary):
    """`a // b` of integers, rounded towards minus infinity."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "//", np.floor_divide, 7, "int"
    a: Expr
    b: Expr


@node
class FloorMod(Binary):
    """`a % b` of integers, with the sign of *b*."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "%", np.mod, 7, "int"
    a: Expr
    b: Expr


def _trunc_div(a: Any, b: Any) -> Any:
    q = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -q, q).astype(np.asarray(a).dtype)[()]


@node
class TruncDiv(Binary):
    """`a / b` of integers, rounded towards zero; text form `truncdiv(a, b)`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "truncdiv", _trunc_div, 0, "int"
    a: Expr
    b: Expr


@node
class TruncMod(Binary):
    """The remainder of `TruncDiv`, with the sign of *a*; text form `truncmod(a, b)`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "truncmod", np.fmod, 0, "int"
    a: Expr
    b: Expr


DIVISIONS: Final = (FloorDiv, FloorMod, TruncDiv, TruncMod)
"""The operators that have no value where the divisor is zero."""


@node
class Min(Binary):
    """`min(a, b)`; of floats, NaN if either is."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, commutative = "min", np.minimum, 0, True
    a: Expr
    b: Expr


@node
class Max(Binary):
    """`max(a, b)`; of floats, NaN if either is."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, commutative = "max", np.maximum, 0, True
    a: Expr
    b: Expr


@node
class Lt(Comparison):
    """`a < b`."""

    __derived__ = ("dtype",)
    symbol, numpy = "<", np.less
    a: Expr
    b: Expr


@node
class Le(Comparison):
    """`a <= b`."""

    __derived__ = ("dtype",)
    symbol, numpy = "<=", np.less_equal
    a: Expr
    b: Expr


@node
class Eq(Comparison):
    """`a == b`; built by `eq(a, b)`."""

    __derived__ = ("dtype",)
    symbol, numpy, commutative, kinds = "==", np.equal, True, "any"
    a: Expr
    b: Expr


@node
class Ne(Comparison):
    """`a != b`; built by `ne(a, b)`."""

    __derived__ = ("dtype",)
    symbol, numpy, commutative, kinds = "!=", np.not_equal, True, "any"
    a: Expr
    b: Expr


@node
class And(Binary):
    """`a and b`; *b* is evaluated only where *a* holds."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "and", np.logical_and, 2, "bool"
    a: Expr
    b: Expr


@node
class Or(Binary):
    """`a or b`; *b* is evaluated only where *a* does not hold."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "or", np.logical_or, 1, "bool"
    a: Expr
    b: Expr


@node
class BitAnd(Binary):
    """`a & b`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, commutative, kinds = "&", np.bitwise_and, 5, True, "int"
    a: Expr
    b: Expr


@node
class BitOr(Binary):
    """`a | b`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, commutative, kinds = "|", np.bitwise_or, 5, True, "int"
    a: Expr
    b: Expr


@node
class BitXor(Binary):
    """`a ^ b`."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, commutative, kinds = "^", np.bitwise_xor, 5, True, "any"
    a: Expr
    b: Expr


@node
class ShiftLeft(Binary):
    """`a << b`, for 0 <= b < bits."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = "<<", np.left_shift, 5, "int"
    a: Expr
    b: Expr


@node
class ShiftRight(Binary):
    """`a >> b`, for 0 <= b < bits; keeps the sign of a signed *a*."""

    __derived__ = ("dtype",)
    symbol, numpy, precedence, kinds = ">>", np.right_shift, 5, "int"
    a: Expr
    b: Expr


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
        """Refuses to change the number of lanes."""
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
class Apply(Expr):
    """A pure function of `ir.intrinsics` applied to operands of one type."""

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


E = TypeVar("E", bound=Expr)


def const(value: Value | np.generic, dtype: DType) -> Expr:
    """Returns *value* as a constant of *dtype*, rounded or wrapped as NumPy would; a vector type broadcasts it."""
    element = dtype.element
    if element.is_float:
        plain: Value = float(np.asarray(value).astype(element.numpy))
    elif element.is_bool:
        plain = bool(value)
    else:
        plain = _wrap(int(value), element)
    made = Const(plain, element)
    return made if dtype.lanes == 1 else Broadcast(made, dtype.lanes)


def _wrap(value: int, dtype: DType) -> int:
    if dtype is INDEX and -_WRAPS <= value < _WRAPS:
        return value
    low, high = dtype.int_range
    return value if low <= value <= high else (value - low) % (1 << dtype.bits) + low


def index(value: int) -> Const:
    """Returns the index constant *value*."""
    known = _SMALL.get(value)
    return Const(value, INDEX) if known is None else known


_SMALL: Final = {value: Const(value, INDEX) for value in range(-64, 1025)}
"""Index constants that come and go all the time; these stay."""


ZERO: Final = index(0)
ONE: Final = index(1)
TRUE: Final = Const(True, bool_)
FALSE: Final = Const(False, bool_)


def as_expr(value: ExprLike, dtype: DType = INDEX) -> Expr:
    """Returns *value* itself if it is an expression, else as a constant of *dtype*.

    Raises `TypeMismatch` for a Python number that *dtype* cannot hold, such as 0.5 as an index.
    """
    if isinstance(value, Expr):
        return value
    if type(value) is int and dtype is INDEX:
        return index(_wrap(value, INDEX))
    if dtype.is_int and (isinstance(value, float) and not value.is_integer()):
        raise TypeMismatch(f"{value!r} is not of type {dtype}", hint="write a value of that type, or cast()")
    return const(value, dtype)


def binary(cls: type[Binary], a: Expr, b: ExprLike) -> Expr:
    """Builds `a <op> b`; a scalar beside a vector is broadcast, and integer constants are folded at once."""
    right = as_expr(b, a.dtype)
    if a.dtype.lanes != right.dtype.lanes:
        lanes = max(a.dtype.lanes, right.dtype.lanes)
        a, right = broadcast(a, lanes), broadcast(right, lanes)
    if type(a) is Const or type(right) is Const:
        return _fold_index(cls, a, right)
    return cls(a, right)


def _fold_index(cls: type[Binary], a: Expr, b: Expr) -> Expr:
    """Folds what index arithmetic makes all the time: two constants, and the identities of + - * // with 0 and 1."""
    if a.dtype is not INDEX or b.dtype is not INDEX:
        return cls(a, b)
    if isinstance(a, Const) and isinstance(b, Const):
        folded = _fold_constants(cls, int(a.value), int(b.value))
        return cls(a, b) if folded is None else folded
    if a is ZERO and cls is Add:
        return b
    if a is ONE and cls is Mul:
        return b
    if b is ZERO and cls in (Add, Sub):
        return a
    if b is ONE and cls in (Mul, FloorDiv):
        return a
    if (a is ZERO or b is ZERO) and cls is Mul:
        return ZERO
    return cls(a, b)


_FOLDED: Final[dict[type[Binary], Callable[[int, int], int]]] = {
    Add: operator.add, Sub: operator.sub, Mul: operator.mul, FloorDiv: operator.floordiv, FloorMod: operator.mod,
    Min: min, Max: max, Lt: operator.lt, Le: operator.le, Eq: operator.eq, Ne: operator.ne,
}  # fmt: skip


def _fold_constants(cls: type[Binary], a: int, b: int) -> Expr | None:
    fold = _FOLDED.get(cls)
    if fold is None or (b == 0 and cls in (FloorDiv, FloorMod)):
        return None
    value = fold(a, b)
    return (TRUE if value else FALSE) if isinstance(value, bool) else index(_wrap(value, INDEX))


def broadcast(value: Expr, lanes: int) -> Expr:
    """Returns *value* in each of *lanes* lanes; one that has them already is returned as it is."""
    return value if value.dtype.lanes == lanes else Broadcast(value, lanes)


def cast(value: Expr, dtype: DType) -> Expr:
    """Converts *value* to the element type of *dtype*; constants are converted at once."""
    target = dtype.with_lanes(value.dtype.lanes)
    if value.dtype is target:
        return value
    if isinstance(value, Const) and not (value.dtype.is_float and not dtype.is_float):
        return const(value.value, dtype.element)
    return Cast(value, target)


def apply(fn: str, *args: ExprLike) -> Expr:
    """Applies the intrinsic *fn*; plain numbers take the type of the first expression among the operands."""
    like = next((x.dtype for x in args if isinstance(x, Expr)), None)
    if like is None:
        raise TypeMismatch(f"{fn} needs at least one operand that is an expression")
    return Apply(fn, tuple([as_expr(x, like) for x in args]))


def select(cond: Expr, then: ExprLike, other: ExprLike) -> Expr:
    """Returns *then* where *cond* holds, else *other*; a constant condition chooses at once.

    Raises `TypeMismatch` where *cond* is no expression: `a == b` is Python's own comparison, of identity.
    """
    if not isinstance(cond, Expr):
        raise TypeMismatch(f"the condition of select is {cond!r}, not an expression", hint="write eq(a, b) or ne(a, b)")
    like = then.dtype if isinstance(then, Expr) else other.dtype if isinstance(other, Expr) else INDEX
    a, b = as_expr(then, like), as_expr(other, like)
    if cond is TRUE or a is b:
        return a
    return b if cond is FALSE else Select(cond, a, b)


def minimum(a: Expr, b: ExprLike) -> Expr:
    """Returns `min(a, b)`."""
    return binary(Min, a, b)


def maximum(a: Expr, b: ExprLike) -> Expr:
    """Returns `max(a, b)`."""
    return binary(Max, a, b)


def eq(a: Expr, b: ExprLike) -> Expr:
    """Returns the expression `a == b`."""
    return binary(Eq, a, b)


def ne(a: Expr, b: ExprLike) -> Expr:
    """Returns the expression `a != b`."""
    return binary(Ne, a, b)


def all_of(conditions: Iterable[Expr]) -> Expr:
    """Returns the conjunction of *conditions*; `true` for none."""
    result: Expr = TRUE
    for c in conditions:
        if c is not TRUE:
            result = c if result is TRUE else And(result, c)
    return result


def conjuncts(cond: Expr) -> list[Expr]:
    """Returns the conditions that *cond* is the conjunction of; none for `true`."""
    found: list[Expr] = []
    stack = [cond]
    while stack:
        c = stack.pop()
        if isinstance(c, And):
            stack += [c.b, c.a]
        elif c is not TRUE:
            found.append(c)
    return found


def ceil_div(a: ExprLike, b: ExprLike) -> Expr:
    """Returns `a / b` rounded up, for a positive *b*."""
    left, right = as_expr(a), as_expr(b)
    return (left + right - 1) // right
