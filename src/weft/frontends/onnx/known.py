"""Values known while a model is imported, and the operators that are computed on them there and then.

Exporters compute shapes with the model's own operators: Shape, Gather, Mul, Concat, then Reshape. A `Known` holds such a value:
an array of numbers or, where a symbolic size takes part, an array of integers and index expressions. The operators in `FOLDS` map
known values to known values, so that this arithmetic leaves no trace in the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.graph.graph import Array
from weft.graph.text import attribute_text, type_text
from weft.ir.expr import INDEX, Binary, Const, Expr, ExprLike, Le, Lt, as_expr, eq, index, maximum, minimum
from weft.ir.prove import prove
from weft.ops.registry import TensorType
from weft.ops.shapes import is_tractable, same_size, simplify_size, size_bounds
from weft.support.dtypes import DType, from_numpy, i64
from weft.te import is_narrow

LARGEST_FOLD: Final = 4096
"""Elements up to which numbers are computed at import; larger arrays are left to the graph's constant folding."""

SHOWN: Final = 8
"""Elements that are shown of a known tensor, if it has no more."""


class Unknown(Exception):
    """The result is not known while importing: the operator must become a node of the graph."""


class Known:
    """A tensor whose elements are known: numbers, or (`symbolic`) integers and index expressions in an array of objects."""

    __slots__ = ("array", "dtype", "name")

    def __init__(self, array: Array, name: str = "", dtype: DType | None = None) -> None:
        self.array = array
        self.name = name
        self.dtype = dtype or (i64 if array.dtype == object else from_numpy(array.dtype))

    @property
    def symbolic(self) -> bool:
        """Tells whether an element is an index expression rather than a number."""
        return self.array.dtype == object

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The extents."""
        return tuple([index(n) for n in self.array.shape])

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return self.array.ndim

    def __repr__(self) -> str:
        type_ = type_text(TensorType(self.shape, self.dtype))
        elements = f" = {attribute_text(tuple(self.array.ravel().tolist()))}" if self.array.size <= SHOWN else ""
        return f"{self.name or 'a constant'}: {type_}{elements}"


def sizes_array(sizes: Sequence[ExprLike], shape: tuple[int, ...] | None = None) -> Array:
    """Returns *sizes* as an array of *shape* (a vector for None): of int64, or of objects where one is symbolic."""
    made = np.empty(len(sizes), object)
    made[:] = [_settled(s) for s in sizes]
    return _numbers(made.reshape((len(sizes),) if shape is None else shape))


def _settled(e: Any) -> Any:
    """Returns an index expression simplified, as a Python integer where it is constant; raises `Unknown` for one too large."""
    if isinstance(e, int | np.integer | np.bool_) and not is_tractable(int(e)):
        raise Unknown
    if not isinstance(e, Expr):
        return int(e) if isinstance(e, int | np.integer | np.bool_) else e
    simple = simplify_size(e)
    if not is_tractable(simple):
        raise Unknown
    return simple.value if isinstance(simple, Const) else simple


def _numbers(a: Array) -> Array:
    """Returns an array of objects as int64 where no element is symbolic."""
    return a if any(isinstance(e, Expr) for e in a.flat) else a.astype(np.int64)


def fold(op: str, inputs: Sequence[Known], attributes: dict[str, Any]) -> list[Known]:
    """Computes the operator *op* on known values; raises `Unknown` where it can't, or had better not be, done now."""
    fn = FOLDS.get(op)
    symbolic = any(k.symbolic for k in inputs)
    if fn is None or sum(k.array.size for k in inputs) > LARGEST_FOLD:
        raise Unknown
    arrays = [k.array.astype(np.float32) if is_narrow(k.dtype) else k.array for k in inputs]
    if symbolic and op in _ELEMENTWISE:
        arrays = [_whole(k.array) for k in inputs]
        fn = _DIVIDE_EXACTLY if op == "div" and inputs[0].dtype.is_float else fn
    with np.errstate(all="ignore"):
        try:
            made = fn(*arrays, **attributes)
        except (IndexError, TypeError, ValueError):  # they do not fit together, as the operator will say
            raise Unknown from None
    results = made if isinstance(made, list) else [made]
    return [_result(np.asarray(r), op, inputs, attributes) for r in results]


def _whole(a: Array) -> Array:
    """Returns an array of integers and index expressions; raises `Unknown` for one with a fraction."""
    if a.dtype.kind == "f" and not np.array_equal(a, np.trunc(a)):
        raise Unknown
    return a.astype(np.int64).astype(object) if a.dtype.kind == "f" else a.astype(object)


def _result(array: Array, op: str, inputs: Sequence[Known], attributes: dict[str, Any]) -> Known:
    """Gives a computed array its type: the operator's where it has one of its own, else that of its operands."""
    if array.dtype == object:
        array = sizes_array(list(array.flat), array.shape)
        if op == "cast" or (inputs and op not in _OWN_TYPE):
            dtype = attributes["dtype"] if op == "cast" else inputs[1 if op == "where" else 0].dtype
            return Known(array if array.dtype == object else array.astype(dtype.numpy), dtype=dtype)
        return Known(array)
    if inputs and op not in _OWN_TYPE:
        array = array.astype(inputs[1 if op == "where" else 0].dtype.numpy, copy=False)
    return Known(array if array.flags.c_contiguous else array.copy())


def _check_spread(*arrays: Array) -> None:
    """Raises `Unknown` for arrays that are small, but large when broadcast together."""
    _check_count(math.prod(np.broadcast_shapes(*[a.shape for a in arrays])))


def _check_count(elements: int) -> None:
    if elements > LARGEST_FOLD:
        raise Unknown


def _each(fn: Callable[..., Any]) -> Callable[..., Array]:
    """Applies *fn* to the elements of arrays of objects, broadcast together."""

    def apply(*arrays: Array) -> Array:
        _check_spread(*arrays)
        spread = np.broadcast_arrays(*arrays)
        out = np.empty(spread[0].shape, object)
        for at in np.ndindex(out.shape):
            out[at] = fn(*[a[at] for a in spread])
        return out

    return apply


def _on_either(numbers: Callable[..., Any], sizes: Callable[..., Any]) -> Callable[..., Array]:
    """Chooses the meaning for numbers or for index expressions, by what the operands are."""
    each = _each(sizes)

    def apply(*arrays: Array) -> Array:
        if any(a.dtype == object for a in arrays):
            return each(*arrays)
        _check_spread(*arrays)
        return np.asarray(numbers(*arrays))

    return apply


def is_certain(condition: Expr) -> bool:
    """Tells whether *condition* certainly holds, given that symbolic sizes are at least one."""
    return prove(condition, size_bounds(condition))


def _divide(a: Array, b: Array) -> Array:
    if np.issubdtype(a.dtype, np.integer) and not np.all(b):
        raise Unknown
    return (np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(a.dtype) if a.dtype.kind in "iu" else a / b


def _divide_sizes(a: Any, b: Any) -> Any:
    """Rounding towards zero is rounding down where neither is negative."""
    if isinstance(a, int) and isinstance(b, int) and b != 0:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if not is_certain((as_expr(b) > 0) & (as_expr(a) >= 0)):
        raise Unknown
    return as_expr(a) // as_expr(b)


def _divide_exactly(a: Any, b: Any) -> Any:
    """Divides sizes that are floats, where nothing remains."""
    if not is_certain(as_expr(b) > 0) or not same_size(as_expr(a) // b * b, as_expr(a)):
        raise Unknown
    return as_expr(a) // as_expr(b)


def _remainder_sizes(a: Any, b: Any) -> Any:
    if not is_certain((as_expr(b) > 0) & (as_expr(a) >= 0)):
        raise Unknown
    return as_expr(a) % as_expr(b)


def _decided(compare: Callable[[Expr, Expr], Expr]) -> Callable[[Any, Any], bool]:
    """Decides a comparison of sizes; raises `Unknown` where it depends on them."""

    def decide(a: Any, b: Any) -> bool:
        condition = compare(as_expr(a), as_expr(b))
        if is_certain(condition):
            return True
        if is_certain(~condition):
            return False
        raise Unknown

    return decide


def _binary(cls: type[Binary]) -> Callable[[Expr, Expr], Expr]:
    return cls


def _comparison(numbers: Callable[..., Any], sizes: Callable[[Expr, Expr], Expr]) -> Callable[..., Array]:
    folded = _on_either(numbers, _decided(sizes))
    return lambda *arrays: folded(*arrays).astype(np.bool_)


def _absolute(a: Any) -> Any:
    if not is_certain(as_expr(a) >= 0):
        raise Unknown
    return a


def _cast(a: Array, *, dtype: DType) -> Array:
    if a.dtype == object and not (dtype.is_float or (dtype.is_int and dtype.bits >= 32)):
        raise Unknown
    return a if a.dtype == object else a != 0 if dtype.is_bool else a.astype(dtype.numpy)


def _where(cond: Array, a: Array, b: Array) -> Array:
    _check_spread(cond, a, b)
    return np.where(cond.astype(np.bool_), a, b)


def _integers(values: Sequence[Any]) -> list[int]:
    if not all(isinstance(v, int) for v in values):
        raise Unknown
    return list(values)


def _slice(a: Array, *, starts: Any, ends: Any, axes: Any, steps: Any, inside: bool = False) -> Array:
    where: list[slice] = [slice(None)] * a.ndim
    for d, s, e, st in zip(axes, _integers(starts), _integers(ends), steps, strict=True):
        where[d] = slice(s, e, st)
    return a[tuple(where)]


def _static(shape: Sequence[Any]) -> list[int]:
    return _integers([_settled(s) for s in shape])


def _split(a: Array, *, axis: int, sizes: Sequence[Any]) -> list[Array]:
    return np.split(a, np.cumsum(_static(sizes))[:-1], axis)


def _gather(a: Array, indices: Array, *, axis: int) -> Array:
    if indices.dtype == object or not ((-a.shape[axis] <= indices) & (indices < a.shape[axis])).all():
        raise Unknown
    _check_count(a.size // max(1, a.shape[axis]) * indices.size)
    return np.asarray(np.take(a, indices, axis))


def _full(*, shape: Sequence[Any], value: Any, dtype: DType) -> Array:
    sizes = _static(shape)
    _check_count(math.prod(sizes))
    return np.full(sizes, value, dtype.numpy)


def _expand(a: Array, *, shape: Sequence[Any]) -> Array:
    target = np.broadcast_shapes(a.shape, tuple(_static(shape)))
    _check_count(math.prod(target))
    return np.broadcast_to(a, target)


def _tile(a: Array, *, repeats: Any) -> Array:
    _check_count(a.size * math.prod(repeats))
    return np.tile(a, repeats)


def _range(*, start: Any, size: Any, step: Any) -> Array:
    first, count, by = _integers([_settled(start), _settled(size), _settled(step)])
    _check_count(count)
    return first + np.arange(count, dtype=np.int64) * by


def _reduced(numbers: Callable[..., Any], combine: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    """Reduces over all of a vector's axes, whatever its elements are; only a vector of sizes is reduced with symbols."""

    def apply(a: Array, *, axes: Any, keepdims: bool) -> Array:
        if a.size == 0:
            raise Unknown
        if a.dtype != object:
            return np.asarray(numbers(a, axis=axes if axes is None else tuple(axes), keepdims=keepdims))
        if a.ndim != 1 or not a.size or axes == ():
            raise Unknown
        total = a.flat[0]
        for e in list(a.flat)[1:]:
            total = combine(total, e)
        out = np.empty((1,) if keepdims else (), object)
        out[...] = total
        return out

    return apply


def _min_sizes(a: Any, b: Any) -> Any:
    return minimum(as_expr(a, INDEX), as_expr(b, INDEX))


def _max_sizes(a: Any, b: Any) -> Any:
    return maximum(as_expr(a, INDEX), as_expr(b, INDEX))


def _add(a: Any, b: Any) -> Any:
    return a + b


def _mul(a: Any, b: Any) -> Any:
    return a * b


def _same(a: Any) -> Any:
    return a


def _numbers_only(fn: Callable[..., Any]) -> Callable[..., Array]:
    def apply(*arrays: Array, **attributes: Any) -> Array:
        if any(a.dtype == object for a in arrays):
            raise Unknown
        _check_spread(*arrays)
        return np.asarray(fn(*arrays, **attributes))

    return apply


_DIVIDE_EXACTLY: Final = _on_either(np.divide, _divide_exactly)
_ELEMENTWISE: Final = frozenset(
    {"add", "sub", "mul", "div", "trunc_mod", "floor_mod", "minimum", "maximum", "less", "less_equal", "equal", "where", "neg"}
)  # fmt: skip
_OWN_TYPE: Final = frozenset({"less", "less_equal", "equal", "cast", "is_nan"})

FOLDS: Final[dict[str, Callable[..., Any]]] = {
    "add": _on_either(np.add, _add),
    "sub": _on_either(np.subtract, lambda a, b: a - b),
    "mul": _on_either(np.multiply, _mul),
    "div": _on_either(_divide, _divide_sizes),
    "trunc_mod": _on_either(np.fmod, _remainder_sizes),
    "floor_mod": _on_either(np.mod, _remainder_sizes),
    "minimum": _on_either(np.minimum, _min_sizes),
    "maximum": _on_either(np.maximum, _max_sizes),
    "neg": _on_either(np.negative, lambda a: -a),
    "abs": _on_either(np.abs, _absolute),
    "less": _comparison(np.less, _binary(Lt)),
    "less_equal": _comparison(np.less_equal, _binary(Le)),
    "equal": _comparison(np.equal, eq),
    "logical_and": _numbers_only(np.logical_and),
    "logical_or": _numbers_only(np.logical_or),
    "logical_not": _numbers_only(np.logical_not),
    "where": _where,
    "floor": _on_either(np.floor, _same),
    "ceil": _on_either(np.ceil, _same),
    "round": _on_either(np.rint, _same),
    "sqrt": _numbers_only(np.sqrt),
    "reciprocal": _numbers_only(np.reciprocal),
    "square": _on_either(np.square, lambda a: a * a),
    "power": _numbers_only(np.power),
    "cast": _cast,
    "identity": lambda a: a,
    "reshape": lambda a, *, shape: a.reshape(_static(shape)),
    "transpose": lambda a, *, perm: a.transpose(perm),
    "expand": _expand,
    "concat": lambda *arrays, axis: np.concatenate(arrays, axis),
    "slice": _slice,
    "split": _split,
    "gather": _gather,
    "tile": _tile,
    "full": _full,
    "range": _range,
    "cumsum": _numbers_only(lambda a, *, axis, exclusive, reverse: _cumsum(a, axis, exclusive, reverse)),
    "reduce_sum": _reduced(np.sum, _add),
    "reduce_prod": _reduced(np.prod, _mul),
    "reduce_max": _reduced(np.max, _max_sizes),
    "reduce_min": _reduced(np.min, _min_sizes),
}


def _cumsum(a: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    if exclusive or reverse:
        raise Unknown
    return np.cumsum(a, axis)
