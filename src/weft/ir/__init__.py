"""Scalar expressions: interned nodes, one rewriter, the simplifier and bounds."""

from weft.ir.affine.assume import assume
from weft.ir.affine.iter_map import IterMap, detect_iter_map
from weft.ir.affine.iter_sum import Fused, Source, Split
from weft.ir.affine.prove import extremes, linear_terms, prove
from weft.ir.affine.hull import Ends, hull
from weft.ir.bounds.bounds import EMPTY, Bounds
from weft.ir.bounds.known_divisor import known_divisor
from weft.ir.bounds.ranges import RangesOrZero
from weft.ir.bounds.polynomial import Monomial, Poly, poly_to_expr, plus, poly_of
from weft.ir.expr import EXPRESSIONS
from weft.ir.expr.base import INDEX, Expr, ExprLike, Value, Var
from weft.ir.expr.binary import (
    DIVISIONS, Add, And, Binary, BitAnd, BitOr, BitXor, Comparison, Div, Eq, FloorDiv, FloorMod, Le, Lt, Max, Min, Mul, Ne, Or,
    ShiftLeft, ShiftRight, Sub, TruncDiv, TruncMod,
)
from weft.ir.expr.constructors import (
    FALSE, ONE, TRUE, ZERO, all_of, apply, as_expr, broadcast, cast, ceil_div, conjuncts, const, eq, index, maximum,
    minimum, ne, select,
)
from weft.ir.expr.rounded_operands import rounded_like, rounded_operand
from weft.ir.expr.dot import Dot, dot
from weft.ir.expr.pure_functions import INTRINSICS
from weft.ir.expr.node import ADDRESSES, APPLIES, BRANCHES, DIVIDES, READS, SELECTS, Node, node
from weft.ir.expr.nodes import Apply, Broadcast, Cast, Const, Neg, Not, Ramp, Reinterpret, Select, Shuffle
from weft.ir.expr.rewrite import Rules, free_vars, is_small, map_nodes, mentions, post_order, rewrite, substitute
from weft.ir.expr.traits import accesses, map_accesses, nodes_with, reads_memory
from weft.ir.simplifier.ramps import as_ramp
from weft.ir.simplifier.simplify import simplify
from weft.ir.text.names import Names, identifier, is_reserved
from weft.ir.text.parser import ExprParser, Plan, TextError, parse_expr, python_syntax
from weft.ir.text.printer import ATOM, AliasPrinter, ExprPrinter, Text, TooLong, print_expr, writes

__all__ = [
    "ADDRESSES",
    "APPLIES",
    "ATOM",
    "BRANCHES",
    "DIVIDES",
    "DIVISIONS",
    "EMPTY",
    "EXPRESSIONS",
    "FALSE",
    "INDEX",
    "INTRINSICS",
    "ONE",
    "READS",
    "SELECTS",
    "TRUE",
    "ZERO",
    "Add",
    "AliasPrinter",
    "And",
    "Apply",
    "Binary",
    "BitAnd",
    "BitOr",
    "BitXor",
    "Bounds",
    "Broadcast",
    "Cast",
    "Comparison",
    "Const",
    "Div",
    "Dot",
    "Ends",
    "Eq",
    "Expr",
    "ExprLike",
    "ExprParser",
    "ExprPrinter",
    "FloorDiv",
    "FloorMod",
    "Fused",
    "IterMap",
    "Le",
    "Lt",
    "Max",
    "Min",
    "Monomial",
    "Mul",
    "Names",
    "Ne",
    "Neg",
    "Node",
    "Not",
    "Or",
    "Plan",
    "Poly",
    "Ramp",
    "RangesOrZero",
    "Reinterpret",
    "Rules",
    "Select",
    "Shuffle",
    "ShiftLeft",
    "ShiftRight",
    "Source",
    "Split",
    "Sub",
    "Text",
    "TooLong",
    "TruncDiv",
    "TruncMod",
    "Value",
    "Var",
    "accesses",
    "all_of",
    "apply",
    "as_expr",
    "as_ramp",
    "assume",
    "broadcast",
    "cast",
    "ceil_div",
    "conjuncts",
    "const",
    "detect_iter_map",
    "dot",
    "eq",
    "extremes",
    "free_vars",
    "hull",
    "identifier",
    "index",
    "is_reserved",
    "is_small",
    "known_divisor",
    "linear_terms",
    "map_accesses",
    "map_nodes",
    "maximum",
    "mentions",
    "minimum",
    "ne",
    "node",
    "nodes_with",
    "parse_expr",
    "plus",
    "poly_of",
    "poly_to_expr",
    "post_order",
    "print_expr",
    "prove",
    "TextError",
    "python_syntax",
    "reads_memory",
    "rewrite",
    "rounded_like",
    "rounded_operand",
    "select",
    "simplify",
    "substitute",
    "writes",
]
