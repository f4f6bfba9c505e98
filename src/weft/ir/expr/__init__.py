"""Expression nodes: typed, immutable and interned, and the functions that build them."""

from weft.ir.expr.base import INDEX, Expr, ExprLike, Value, Var
from weft.ir.expr.binary import (
    DIVISIONS, Add, And, Binary, BitAnd, BitOr, BitXor, Comparison, Div, Eq, FloorDiv, FloorMod, Le, Lt, Max, Min,
    Mul, Ne, Or, ShiftLeft, ShiftRight, Sub, TruncDiv, TruncMod,
)
from weft.ir.expr.build import (
    FALSE, ONE, TRUE, ZERO, all_of, apply, as_expr, binary, broadcast, cast, ceil_div, conjuncts, const, eq, index,
    maximum, minimum, ne, select,
)
from weft.ir.expr.dot import Dot, dot
from weft.ir.expr.nodes import Apply, Broadcast, Cast, Const, Neg, Not, Ramp, Reinterpret, Select

EXPRESSIONS = frozenset(c for c in list(globals().values()) if isinstance(c, type) and issubclass(c, Expr))
"""The classes of scalar expressions; layers above add nodes of their own, which not every program may hold."""

__all__ = [
    "DIVISIONS",
    "EXPRESSIONS",
    "FALSE",
    "INDEX",
    "ONE",
    "TRUE",
    "ZERO",
    "Add",
    "And",
    "Apply",
    "Binary",
    "BitAnd",
    "BitOr",
    "BitXor",
    "Broadcast",
    "Cast",
    "Comparison",
    "Const",
    "Div",
    "Dot",
    "Eq",
    "Expr",
    "ExprLike",
    "FloorDiv",
    "FloorMod",
    "Le",
    "Lt",
    "Max",
    "Min",
    "Mul",
    "Ne",
    "Neg",
    "Not",
    "Or",
    "Ramp",
    "Reinterpret",
    "Select",
    "ShiftLeft",
    "ShiftRight",
    "Sub",
    "TruncDiv",
    "TruncMod",
    "Value",
    "Var",
    "all_of",
    "apply",
    "as_expr",
    "binary",
    "broadcast",
    "cast",
    "ceil_div",
    "conjuncts",
    "const",
    "dot",
    "eq",
    "index",
    "maximum",
    "minimum",
    "ne",
    "select",
]
