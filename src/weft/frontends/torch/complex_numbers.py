"""Complex tensors are two real ones, from the node that makes them to those that read them; outside they are [..., 2].

    z = torch.view_as_complex(x)        real, imaginary = x[..., 0], x[..., 1]
    w = z * (2 - 1j)                    2 * real + imaginary, 2 * imaginary - real

Weft has no type for them: inputs and outputs of a model are as `torch.view_as_real` gives them. The translation of an operator on
complex numbers stands in a table of its own; those that only move elements, or are linear in them, do the same to either part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import torch

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import TABLE, Translation, spelled
from weft.frontends.translation_table import entering
from weft.graph import Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand
from weft.graph.composites.sequences import stack
from weft.ir import Expr
from weft.support.dtypes import DType
from weft.support.registry import Registry

ComplexTranslation: TypeAlias = Callable[[Call], Any]

COMPLEX: Final = Registry[str, ComplexTranslation]("PyTorch operator of complex numbers")

_PROMOTED: Final = ("self", "other", "tensors", "value", "values", "src")
"""Arguments that are of the result's type: real ones among them, and real numbers, have an imaginary part of zero."""


@dataclass(frozen=True, eq=False)
class Complex:
    """A complex tensor: its real and its imaginary part, of one shape and type."""

    real: Operand
    imaginary: Operand

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return self.real.rank

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The sizes of either part."""
        return self.real.shape

    @property
    def dtype(self) -> DType:
        """The element type of either part."""
        return self.real.dtype


def translates_complex(*names: str) -> Callable[[ComplexTranslation], ComplexTranslation]:
    """Enters the decorated function as the translation of the operators *names* where complex numbers are among their tensors."""
    return entering(COMPLEX, names, spelled)


def is_known(name: str) -> bool:
    """Tells whether there is a translation of an operator, be it of complex numbers."""
    return name in TABLE or name in COMPLEX


def parts(c: Call, name: str) -> Complex:
    """Returns an argument that is a complex tensor, a real one or a number."""
    found = c.arguments.get(name)
    if isinstance(found, Complex):
        return Complex(c.cast(found.real, c.dtype), c.cast(found.imaginary, c.dtype))
    if isinstance(found, Value | CompileTimeConstant):
        return Complex(c.cast(found, c.dtype), _zeros(c, found.shape))
    number = complex(c.value(name))
    return Complex(c.scalar(number.real, c.dtype), c.scalar(number.imag, c.dtype))


def joined(b: Builder, x: Complex) -> Operand:
    """Returns a complex tensor as a real one [..., 2]."""
    return stack(b, [x.real, x.imaginary], x.rank)


def taken_apart(b: Builder, x: Operand) -> Complex:
    """Returns a real tensor [..., 2] as a complex one."""
    shape = x.shape[:-1]

    def part(k: int) -> Operand:
        return b.reshape(b.add("slice", x, starts=(k,), ends=(k + 1,), axes=(x.rank - 1,), steps=(1,)), shape)

    return Complex(part(0), part(1))


def part_by_part(c: Call, translate: Translation) -> Any:
    """Returns the results of *translate* on the real parts, and on the imaginary ones."""
    real, imaginary = (translate(_of_part(c, k)) for k in (0, 1))
    if isinstance(real, tuple):
        return tuple([Complex(a, b) for a, b in zip(real, imaginary, strict=True)])  # type: ignore[arg-type]
    return Complex(real, imaginary)  # type: ignore[arg-type]


def _of_part(c: Call, part: int) -> Call:
    arguments = {name: _part(c, name, value, part) for name, value in c.arguments.items()}
    return Call(c.evaluator, c.source, arguments, c._dtype, c._operand_dtype)


def _part(c: Call, name: str, value: Any, part: int) -> Any:
    if isinstance(value, Complex):
        return value.imaginary if part else value.real
    if isinstance(value, complex):
        if name not in _PROMOTED:
            c.fail(f"a complex number for its argument {name!r} is not supported", "multiply by it in the module")
        return value.imag if part else value.real
    if isinstance(value, list | tuple):
        return [_part(c, name, v, part) for v in value]
    if part and name in _PROMOTED and isinstance(value, Value | CompileTimeConstant):
        return _zeros(c, value.shape)
    return 0 if part and name in _PROMOTED and isinstance(value, int | float) else value


def _zeros(c: Call, shape: tuple[Expr, ...]) -> Operand:
    return c.add("full", shape=shape, value=0, dtype=c.dtype)


def real_type(dtype: torch.dtype) -> torch.dtype:
    """Returns the type of the parts of complex numbers; that of others as it is."""
    return dtype.to_real() if dtype.is_complex else dtype


def has_complex(value: Any) -> bool:
    """Tells whether there are complex tensors, or tensors' descriptions of them, among values."""
    if isinstance(value, Mapping | list | tuple):
        return any(map(has_complex, value.values() if isinstance(value, Mapping) else value))
    return isinstance(value, Complex) or (isinstance(value, torch.Tensor) and value.is_complex())
