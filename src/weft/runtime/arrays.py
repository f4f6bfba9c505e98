"""Arrays at the border: NumPy's as they are, anything else through DLPack, and no silent conversion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from weft.native import _rt
from weft.runtime.hints import conversion, is_negated, readable
from weft.runtime.package import TensorSpec
from weft.support.dtypes import handle
from weft.support.errors import InputError
from weft.support.text import printable_line

Array: TypeAlias = np.ndarray[Any, Any]


def as_array(value: object, spec: TensorSpec) -> Array:
    """Returns *value* as a NumPy array over the same memory.

    Raises `InputError` for a value that is no array, is not in the CPU's memory, or cannot be exported.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    export = getattr(value, "__dlpack__", None)
    if export is None:
        raise InputError(
            f"input '{spec.name}' is a {type(value).__name__}, not an array",
            hint=f"give {spec} as a NumPy array, a torch tensor or any array with DLPack, such as "
            f"np.asarray(value, dtype=np.{spec.dtype.numpy.name})",
        )
    try:
        check_plain(value)
        return _rt.from_dlpack(_exported(export))
    except (BufferError, TypeError, RuntimeError) as error:
        raise InputError(
            f"input '{spec.name}' cannot be read where it is: {error}", hint=readable(value, spec)
        ) from error


def check_plain(value: object) -> None:
    """Raises `BufferError` for a tensor that its library would export with other values than it has."""
    if is_negated(value):
        raise BufferError("its elements are the negatives of those in memory")


def _exported(export: Callable[..., object]) -> object:
    """Returns the capsule of an array; of version 1 if its library knows it, which can say that an array is read-only."""
    try:
        return export(max_version=(1, 0))
    except TypeError:
        return export()


def bits(array: Array) -> Array:
    """Returns the array as the native runtime takes it: types of ml_dtypes, which the buffer protocol lacks, as plain bytes."""
    return array.view(f"V{array.itemsize}") if array.dtype.isbuiltin == _REGISTERED else array


_REGISTERED: Final = 2
"""NumPy's `isbuiltin` of a type that another package registered."""


def fit_inputs(values: Sequence[object], specs: Sequence[TensorSpec]) -> list[Array]:
    """Returns contiguous arrays for all inputs; raises `InputError` for the first that does not fit its spec.

    A dimension named in several places must have one size in all of them.
    """
    sizes: dict[str, tuple[int, str]] = {}
    return [bits(fit_input(value, spec, sizes)) for value, spec in zip(values, specs, strict=True)]


def fit_input(value: object, spec: TensorSpec, sizes: dict[str, tuple[int, str]]) -> Array:
    """Returns *value* as a contiguous array of the spec's dtype and shape; notes the named dimensions in *sizes*."""
    array = as_strings(value, spec) if spec.dtype is handle else as_array(value, spec)
    check_dtype(array, spec, value)
    check_shape(array, spec, sizes)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def as_strings(value: object, spec: TensorSpec) -> Array:
    """Returns *value* as an array of str and bytes; raises `InputError` where it holds anything else."""
    array = np.asarray(value)
    made = array.astype(object) if array.dtype.kind in "USTO" else array
    if made.dtype != object or not all(isinstance(e, str | bytes) for e in made.flat):
        raise InputError(
            f"input '{spec.name}' has elements that are no strings (it is an array of {array.dtype})",
            hint=f"give {spec} as an array of str, such as np.asarray(['a', 'b'], dtype=object)",
        )
    try:
        _ = [e.encode("utf-8", "surrogateescape") for e in made.flat if isinstance(e, str)]
    except UnicodeEncodeError:
        raise InputError(
            f"input '{spec.name}' has a string with half a surrogate pair, which no encoding has",
            hint="give text that UTF-8 has, or bytes",
        ) from None
    return made


def fit_outputs(values: Sequence[object], specs: Sequence[TensorSpec]) -> list[Array | None]:
    """Returns the arrays that outputs are written into; raises `InputError` for one that can't be written or does not fit."""
    if len(values) != len(specs):
        signature = ", ".join(map(str, specs))
        raise InputError(
            f"out has {len(values)} arrays, and the model has {len(specs)} outputs",
            hint=f"give an array, or None for a new one, for each of ({signature})",
        )
    return [None if v is None else fit_output(v, spec) for v, spec in zip(values, specs, strict=True)]


def fit_output(value: object, spec: TensorSpec) -> Array:
    """Returns the memory of *value* as an array that can be written, of the spec's dtype and number of dimensions."""
    if spec.dtype is handle:
        raise InputError(
            f"the output {spec} is of strings, and can't be written into an array", hint="give None for it"
        )
    array = value if isinstance(value, np.ndarray) else _writable(value, spec)
    if not array.flags.writeable:
        raise InputError(
            f"the array given for the output '{spec.name}' is read-only", hint="give one that can be written"
        )
    if array.dtype != spec.dtype.numpy or array.ndim != len(spec.shape):
        raise InputError(
            f"the array given for the output {spec} is {array.dtype}{list(array.shape)}",
            hint="give one of the output's type and number of dimensions",
        )
    return array


def _writable(value: object, spec: TensorSpec) -> Array:
    try:
        check_plain(value)
        return np.from_dlpack(value)  # type: ignore[arg-type] # it says so itself
    except (AttributeError, BufferError, TypeError, RuntimeError) as error:
        raise InputError(
            f"the output '{spec.name}' cannot be written into a {type(value).__name__}: {error}",
            hint="give a NumPy array, or a dense tensor with DLPack in the CPU's memory that needs no gradient",
        ) from error


def check_same_shape(array: Any, made: Array, spec: TensorSpec) -> None:
    """Raises `InputError` unless the array given for an output has the shape that the output came to have."""
    if tuple(array.shape) != made.shape:
        raise InputError(
            f"the array given for the output '{spec.name}' has shape {tuple(array.shape)}, not {made.shape}",
            hint="the shape follows from those of the inputs",
        )


def check_dtype(array: Array, spec: TensorSpec, value: object) -> None:
    """Raises `InputError` unless the array over the memory of *value* has the spec's dtype, byte order included."""
    if array.dtype != spec.dtype.numpy and spec.dtype is not handle:
        raise InputError(
            f"input '{spec.name}' has dtype {array.dtype}, and the model takes {spec}",
            hint=f"convert it yourself, so that nothing is lost unseen: {conversion(value, spec)}",
        )


def check_shape(array: Array, spec: TensorSpec, sizes: dict[str, tuple[int, str]]) -> None:
    """Raises `InputError` unless the array's shape is one of the spec's, given the named dimensions seen so far."""
    if array.ndim != len(spec.shape):
        raise InputError(
            f"input '{spec.name}' has {array.ndim} dimensions {array.shape}, and the model takes {spec}",
            hint=f"reshape it to {len(spec.shape)} dimensions",
        )
    for axis, (actual, wanted) in enumerate(zip(array.shape, spec.shape, strict=True)):
        if isinstance(wanted, int):
            check_size(array, spec, axis, wanted, "")
            continue
        if wanted in spec.ranges:
            check_range(actual, spec, axis, wanted)
        size, first = sizes.setdefault(wanted, (actual, f"dimension {axis} of '{spec.name}'"))
        check_size(array, spec, axis, size, f" ({wanted} is {size} by {first})")


def check_range(size: int, spec: TensorSpec, axis: int, name: str) -> None:
    """Raises `InputError` unless the *size* of the dimension called *name* is one that the model was compiled for."""
    sizes = spec.ranges[name]
    if not sizes.holds(size):
        raise InputError(
            f"input '{spec.name}': dimension {axis}, {name}, is {size}, and the model was compiled for {sizes.words}",
            hint=f'give such a size, or compile the model for others: shapes={{"{name}": weft.Dim(...)}}',
        )


def check_size(array: Array, spec: TensorSpec, axis: int, wanted: int, why: str) -> None:
    """Raises `InputError` unless one dimension has the size that is wanted."""
    if array.shape[axis] != wanted:
        raise InputError(
            f"input '{spec.name}' has shape {array.shape}: dimension {axis} is {array.shape[axis]}, not {wanted}{why}",
            hint=f"the model takes {spec}",
        )


def order_inputs(args: Sequence[object], named: Mapping[str, object], specs: Sequence[TensorSpec]) -> list[object]:
    """Returns the values of a call in the order of the specs; raises `InputError` unless there is one for each."""
    signature = f"the model takes ({', '.join(map(str, specs))})"
    if len(args) > len(specs):
        raise InputError(f"{len(args)} inputs were given, and there are only {len(specs)}", hint=signature)
    names = [spec.name for spec in specs]
    unknown = [name for name in named if name not in names]
    if unknown:
        raise InputError(f"there is no input '{unknown[0]}'", hint=signature)
    twice = [name for name in names[: len(args)] if name in named]
    if twice:
        raise InputError(f"input '{twice[0]}' was given twice, in order and by name", hint=signature)
    missing = [name for name in names[len(args) :] if name not in named]
    if missing:
        raise InputError(f"missing inputs: {printable_line(', '.join(missing))}", hint=signature)
    return [*args, *(named[name] for name in names[len(args) :])]
