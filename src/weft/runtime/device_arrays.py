"""Checks arrays in device memory that are passed to a model, with errors in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from weft.native import _rt
from weft.runtime.arrays import Array, bits, check_dtype, check_plain, check_shape, fit_input, fit_outputs
from weft.runtime.devices import DeviceTable
from weft.runtime.package import TensorSpec
from weft.support.dtypes import SCALARS
from weft.support.errors import InputError

DeviceArray: TypeAlias = _rt.DeviceArray
"""An array in the memory of the device that runs a model. `numpy()` copies it; other libraries take it by DLPack."""

_HOST: Final = (1, 3)
"""The kinds of memory that the processor reads, as DLPack numbers them."""


@dataclass(frozen=True)
class _Look:
    """The shape, type and place of another library's tensor, in the words of arrays."""

    dtype: Any
    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


def is_resident(value: object) -> bool:
    """Tells whether *value* is an array in the memory of a device."""
    if isinstance(value, _rt.DeviceArray):
        return True
    place = getattr(value, "__dlpack_device__", None)
    return not isinstance(value, np.ndarray) and place is not None and place()[0] not in _HOST


def fit_call(values: list[object], specs: tuple[TensorSpec, ...], device: DeviceTable | None) -> list[object]:
    """Returns arrays for all inputs as `fit_inputs` does; those that are on *device* stay there.

    Raises `InputError` for the first that does not fit its spec, or is on another device.
    """
    sizes: dict[str, tuple[int, str]] = {}
    made: list[object] = []
    for value, spec in zip(values, specs, strict=True):
        if device is None or not is_resident(value):
            made.append(bits(fit_input(value, spec, sizes)))
            continue
        seen = _look(value, f"input '{spec.name}'", device)
        check_dtype(seen, spec, value)
        check_shape(seen, spec, sizes)
        made.append(value)
    return made


def fit_targets(
    values: list[object], specs: tuple[TensorSpec, ...], device: DeviceTable | None
) -> list[Array | DeviceArray | None]:
    """Returns the targets of outputs as `fit_outputs` does; arrays that are on *device* as they are."""
    there = {k: v for k, v in enumerate(values) if device is not None and is_resident(v)}
    made: list[Any] = list(fit_outputs([None if k in there else v for k, v in enumerate(values)], specs))
    for k, value in there.items():
        assert device is not None
        spec = specs[k]
        if spec.late:
            raise InputError(
                f"the output {spec} is of a size that only the call finds, and can't be written to a device's memory",
                hint="give None for it",
            )
        seen = _look(value, f"the array given for the output '{spec.name}'", device)
        if seen.dtype != spec.dtype.numpy or seen.ndim != len(spec.shape):
            raise InputError(
                f"the array given for the output {spec} is {seen.dtype}{list(seen.shape)}",
                hint="give one of the output's type and number of dimensions",
            )
        made[k] = value
    return made


def _look(value: object, what: str, device: DeviceTable) -> Any:
    """Returns the dtype and the shape of an array on *device*; raises `InputError` where it is elsewhere, or not dense."""
    if isinstance(value, _rt.DeviceArray):
        if value.is_on(device):
            return value
        raise InputError(
            f"{what} is in the memory of another model's device, {value.device}",
            hint="copy it: give its numpy(), or what this model's to_device() makes of that",
        )
    place = value.__dlpack_device__()  # type: ignore[attr-defined] # `is_resident` has seen it
    if device.dlpack != (int(place[0]), int(place[1])):
        raise InputError(
            f"{what} is on another device than the model, which runs on {device.device.name}",
            hint="move it there, or give it in the host's memory",
        )
    try:
        check_plain(value)
        code, shape, is_dense = _rt.look(value)
    except (BufferError, TypeError, RuntimeError, ValueError) as error:
        raise InputError(f"{what} can't be used where it is: {error}", hint="give a plain, dense tensor") from error
    if not is_dense:
        raise InputError(f"{what} is not contiguous in the device's memory", hint="give a contiguous copy of it")
    return _Look(_OF_CODE[code].numpy if code in _OF_CODE else f"of type {code}", shape)


_OF_CODE: Final = {d.code: d for d in SCALARS.values()}
