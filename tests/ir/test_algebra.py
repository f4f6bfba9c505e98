"""Every row of the rule tables, alone, against values: both sides must be equal wherever the row applies."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
from tests.ir.evaluate import Undefined, evaluate, same

from weft.ir import FALSE, TRUE, Binary, Broadcast, Cast, Const, Expr, Node, Ramp, Select, Var, broadcast, const
from weft.ir.expr.binary import Comparison
from weft.ir.simplifier.algebra import ALL
from weft.ir.simplifier.rule_compiler import compile_rules
from weft.ir.simplifier.rule_patterns import Pat, Rule
from weft.support.dtypes import DType, bf16, bool_, f16, f32, f64, i8, i32, i64, u8

LANES = 4
TYPES = {
    "any": (bool_, i64, u8, f32),
    "bool": (bool_,),
    "int": (i8, u8, i32, i64),
    "exact": (i32, i64),
    "signed": (i8, i32, i64),
    "wrapping": (i8, u8),
    "float": (f16, bf16, f32, f64),
}
ROWS = [pytest.param(row, dtype, id=f"{dtype}: {row}") for row in ALL for dtype in TYPES[row.kind]]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -7.25, float("inf"), float("-inf"), float("nan"), 1e-7, 6e4]


def value(dtype: DType, random: Random) -> bool | int | float:
    if dtype.is_bool:
        return random.random() < 0.5
    if dtype.is_float:
        return random.choice(FLOATS)
    low, high = dtype.int_range
    edges = [low, high, low + 1] if dtype.bits == 8 else [-100, 100]
    drawn: int = random.choice([*edges, *range(-6, 12)])
    return drawn if drawn >= low else low


class Instance:
    """An expression of the shape of a pattern, with a variable for each wildcard and constants where they are asked for."""

    def __init__(self, operand: DType, random: Random) -> None:
        self.operand = operand
        self.random = random
        self.bound: dict[str, Expr] = {}

    def of(self, p: Pat, expected: DType) -> Expr:
        if p.kind == "x":
            return self.bound.setdefault(p.name, Var(p.name, expected))
        if p.kind == "c":
            return self.bound.setdefault(p.name, const(value(expected.element, self.random), expected))
        if p.kind == "=":
            return const(p.value, expected)
        assert not isinstance(p.kind, str)
        if p.kind is Ramp:
            base, stride = (self.of(k, expected.element) for k in p.kids)
            return Ramp(base, stride, LANES)
        if p.kind is Broadcast:
            return Broadcast(self.of(p.kids[0], expected.element), LANES)
        return self.operator(p.kind, p.kids, expected)

    def operator(self, cls: type[Node], kids: tuple[Pat, ...], expected: DType) -> Expr:
        inner = self.operand if issubclass(cls, Comparison) else expected
        types = [bool_, expected, expected] if cls is Select else [inner] * len(kids)
        operands = [self.of(k, t) for k, t in zip(kids, types, strict=True)]
        lanes = max(e.dtype.lanes for e in operands)
        made = cls(*[broadcast(e, lanes) for e in operands])
        assert isinstance(made, Expr)
        return made


def is_vector(p: Pat) -> bool:
    return p.kind in (Ramp, Broadcast) or any(is_vector(k) for k in p.kids)


@pytest.mark.sampled(44)
@pytest.mark.parametrize(("row", "dtype"), ROWS)
def test_row(row: Rule, dtype: DType) -> None:
    random = Random(str(row))
    assert not isinstance(row.lhs.kind, str)
    rewrite = compile_rules([row])[row.lhs.kind]
    operand = dtype.with_lanes(LANES if is_vector(row.lhs) else 1)
    applied = 0

    def decide(cond: Expr) -> Expr:
        return decided(cond, env)

    for _ in range(150):
        instance = Instance(operand, random)
        before = instance.of(row.lhs, bool_ if issubclass(row.lhs.kind, Comparison) else operand)
        env = {v: value(v.dtype, random) for v in instance.bound.values() if isinstance(v, Var)}
        applied += check(before, rewrite(before, decide), env)
    assert applied >= 3, "the row hardly ever applies"


def decided(cond: Expr, env: Mapping[Var, bool | int | float]) -> Expr:
    """Takes the place of the simplifier: a condition is certain where it holds for these very values."""
    try:
        return TRUE if evaluate(cond, env) else FALSE
    except Undefined:
        return FALSE


def check(before: Expr, after: Expr | None, env: Mapping[Var, bool | int | float]) -> bool:
    if after is None:
        return False
    assert after.dtype is before.dtype
    assert after is not before
    try:
        expected = evaluate(before, env)
    except Undefined:
        return False
    assert same(expected, evaluate(after, env))
    return True


def test_the_checker_sees_a_wrong_row() -> None:
    x = Var("x", f32)
    with pytest.raises(AssertionError):
        check(x + Const(0.0, f32), x, {x: -0.0})
    with pytest.raises(AssertionError):
        check(Cast(x, f16), x, {x: 1.0})


def test_commutative_operators_say_so() -> None:
    names = {c.__name__ for c in Binary.__subclasses__() if c.commutative}
    assert {"Add", "Mul", "Min", "Max"} <= names
    assert "Sub" not in names
