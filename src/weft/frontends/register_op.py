"""User-defined operators: a tensor expression registered as an operator, with the same rights as a built-in one.

    @weft.register_op("scaled_tanh", onnx="com.example::ScaledTanh")
    def scaled_tanh(x: Tensor, *, scale: float = 1.0) -> Tensor:
        return compute(x.shape, lambda *i: apply("tanh", x[i] * scale), "scaled_tanh", dtype=x.dtype)

Models compiled afterwards may call it. It fuses with its neighbours, uses channel-blocked layouts where its facts allow them,
and its kernels are cached. Models that call it are recompiled in each process, since its definition may have changed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from weft.ops import OPERATORS, Fold, operator
from weft.support.errors import InputError, TypeMismatch, WeftError
from weft.support.lazy_import import resolve
from weft.te import Tensor

F = TypeVar("F", bound=Callable[..., Any])

ONNX: Final = "weft.frontends.onnx.user_operators"
"""Imported only for an operator that ONNX models call, since it needs the package onnx."""

_TENSORS: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
_SIGNATURE: Final = "write def f(x, y, *, attribute=1.0): tensors first, attributes after the star"


class _Enter(Protocol):
    def __call__(self, key: tuple[str, str], op: str) -> None: ...


def register_op(
    name: str, *, onnx: str | None = None, along: str | None = None, per_channel: bool = False, fold: Fold | None = None
) -> Callable[[F], F]:
    """Registers the decorated function as the operator *name*; *onnx* is the ONNX node type it implements ("domain::Name").

    Positional parameters of the function are input tensors (`weft.te.Tensor`), optional if their default is None; keyword-only
    parameters are attributes. The function returns a tensor or a tuple of tensors, and raises `TypeMismatch` for inputs that it
    does not support. *along*, *per_channel* and *fold* are facts that can't be derived from the expression; see
    `weft.ops.Operator`. Register operators before compiling models that use them.

    Raises `InputError` for a name that is taken or invalid, and for a function with an unsuitable signature.
    """
    if not name.isidentifier():
        raise InputError(f"{name!r} is no name for an operator", hint="take letters, digits and underscores")
    if name in OPERATORS:
        raise InputError(f"there is an operator {name} already", hint="register yours under another name")
    key = None if onnx is None else _key(onnx)

    def register(build: F) -> F:
        _check_signature(name, build)
        if key is not None:
            parse: Callable[[tuple[str, str]], None] = resolve(f"{ONNX}:check_free")
            parse(key)
        operator(name, along=along, per_channel=per_channel, fold=fold)(_checked(name, build))
        if key is not None:
            enter: _Enter = resolve(f"{ONNX}:enter")
            enter(key, name)
        return build

    return register


def _key(onnx: str) -> tuple[str, str]:
    """Returns the domain and the name of "domain::Name"."""
    domain, separator, name = onnx.partition("::")
    if not (separator and domain and name):
        raise InputError(
            f"onnx={onnx!r} does not name an operator of a domain",
            hint='write it as "domain::Name": "com.example::Swirl"',
        )
    return domain, name


def _check_signature(name: str, build: Callable[..., Any]) -> None:
    if not callable(build):
        raise InputError(f"the operator {name} is to be a function, not {type(build).__name__}", hint=_SIGNATURE)
    parameters = inspect.signature(build).parameters.values()
    for p in parameters:
        if p.kind not in (*_TENSORS, inspect.Parameter.KEYWORD_ONLY):
            raise InputError(f"the operator {name} can't have the parameter {p}", hint=_SIGNATURE)
        if p.kind in _TENSORS and p.default not in (inspect.Parameter.empty, None):
            raise InputError(
                f"the parameter {p.name} of the operator {name} is a tensor, and a tensor's default can only be None",
                hint=_SIGNATURE,
            )
    if not any(p.kind in _TENSORS for p in parameters):
        raise InputError(f"the operator {name} takes no tensor", hint=_SIGNATURE)


def _checked(name: str, build: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps *build* so that its exceptions, and results that are no tensors, are reported as errors of the operator *name*."""

    def checked(*inputs: Tensor | None, **attributes: Any) -> Any:
        try:
            made = build(*inputs, **attributes)
        except WeftError:
            raise
        except Exception as error:
            raise TypeMismatch(
                f"the formula of {name} failed ({type(error).__name__}: {error})",
                hint="its function is given to register_op",
            ) from error
        for t in made if isinstance(made, tuple) and made else (made,):
            if not isinstance(t, Tensor):
                raise TypeMismatch(
                    f"the formula of {name} returned {type(t).__name__}, not a tensor", hint="return compute(...)"
                )
        return made

    checked.__signature__ = inspect.signature(build)  # type: ignore[attr-defined]
    return checked
