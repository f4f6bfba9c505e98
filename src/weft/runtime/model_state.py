"""The state of a sequence of calls of a model, such as the caches of a decoder."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np

from weft.native import _rt
from weft.runtime.arrays import Array, bits
from weft.runtime.devices import DeviceTable
from weft.runtime.package import Package, StateSpec, TensorSpec
from weft.support.errors import ArtifactError, DeviceError, InputError, RuntimeFailure, WeftError
from weft.support.files import write_pieces

_ABOUT: Final = "weft_state"
BUSY: Final = "the state is in use by another call"
BUSY_HINT: Final = "a state is for one thread at a time: give each its own, by new_state() or copy()"
FULL: Final = "it is full"
"""How the message ends of a call that would make a state longer than its capacity."""
FULL_HINT: Final = "reset() the state, or compile the model with more capacity"
SPOILT: Final = "a call failed while it wrote the state, which is neither old nor new"
SPOILT_HINT: Final = "reset() it, or go on with a copy() that was made before"


class State(Mapping[str, Array]):
    """The values that live across the calls of a model, by the names of the inputs that they were: made by `Model.new_state`.

    It begins with the values given to `new_state`, else with those that the model gives, such as a file's initializers of inputs,
    else with zeros, and where it grows without rows. `state[name]` is a copy of a
    value as it is now, and setting it replaces that; of one that grows, all rows. A state is for one thread at a time: a second
    call raises `RuntimeFailure`, and so does a call after one that failed while it wrote a value in its place.
    """

    def __init__(
        self,
        native: _rt.State,
        specs: Mapping[str, tuple[TensorSpec, StateSpec]],
        device: DeviceTable | None = None,
    ) -> None:
        """Wraps a native state, whose values are in the memory of *device* if there is one; *specs* are in its order."""
        self.native = native
        self._device = device
        self._specs = dict(specs)
        self._numbers = {name: k for k, name in enumerate(self._specs)}
        self._initial: Mapping[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        k = self._numbers[name]
        with _explained(self._device):
            return self.native.read(k)

    def __setitem__(self, name: str, value: object) -> None:
        """Replaces a value; raises `InputError` for an array of another type or shape."""
        if name not in self._specs:
            raise InputError(f"there is no state {name}", hint=f"the states are {', '.join(self._specs)}")
        spec, kind = self._specs[name]
        array = np.asarray(value, order="C")  # not `ascontiguousarray`, which makes a vector of a number
        wanted = list(self.native.shape(self._numbers[name]))
        rows = 0
        if kind.axis is not None and array.ndim == len(wanted):
            rows = wanted[kind.axis] = array.shape[kind.axis]
        most = spec.shape[kind.axis] if kind.axis is not None else rows
        if array.dtype != spec.dtype.numpy or list(array.shape) != wanted or rows > int(most):
            hint = f"give an array of {spec.dtype}{wanted}" + (
                f", of at most {most} rows" if kind.axis is not None else ""
            )
            raise InputError(f"the state {name} can't be an array of {array.dtype}{list(array.shape)}", hint=hint)
        with _explained(self._device):
            self.native.write(self._numbers[name], bits(array), rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def length(self, name: str) -> int:
        """Returns how many rows a state that grows has; raises `InputError` for any other."""
        axis = self._specs[name][1].axis if name in self._specs else None
        if axis is None:
            raise InputError(f"{name} is no state that grows", hint="its shape is always the same")
        return int(self.native.shape(self._numbers[name])[axis])

    def begin_with(self, initial: Mapping[str, object]) -> None:
        """Replaces the values *initial*, which `reset` gives again; raises `InputError` as setting them does."""
        kept = {name: np.array(value) for name, value in initial.items()}  # which the caller may change
        for name, value in kept.items():
            self[name] = value
        self._initial = kept

    def reset(self) -> None:
        """Gives back the values that it began with."""
        with _explained(self._device):
            self.native.reset()
        self.begin_with(self._initial)

    def copy(self) -> State:
        """Returns a state with the same values, which goes on by itself."""
        with _explained(self._device):
            made = State(self.native.copy(), self._specs, self._device)
        made._initial = self._initial
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the values to a file, for `Model.load_state`; raises `ArtifactError` where it can't be written."""
        arrays = [np.ascontiguousarray(value) for value in self.values()]
        about = [[name, str(self._specs[name][0].dtype), list(a.shape)] for name, a in zip(self, arrays, strict=True)]
        parts = {f"s{k}": a.reshape(-1).view(np.uint8) for k, a in enumerate(arrays)}
        parts[_ABOUT] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        made = io.BytesIO()
        np.savez(made, **parts)  # type: ignore[arg-type]
        write_pieces(Path(path), [made.getvalue()])

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Takes the values of a file; raises `ArtifactError` for one that is no state, or another model's."""
        where, wanted = os.fspath(path), [[name, str(spec.dtype)] for name, (spec, _) in self._specs.items()]
        try:
            with np.load(where, allow_pickle=False) as archive:
                about: Sequence[Any] = json.loads(archive[_ABOUT].tobytes())
                parts = [archive[f"s{k}"] for k in range(len(about))]
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise ArtifactError(
                f"it is no state: {error}", where=str(where), hint="give a file of State.save"
            ) from error
        if [[name, dtype] for name, dtype, _ in about] != wanted:
            raise ArtifactError(
                "it is the state of another model", where=str(where), hint="give one that this model saved"
            )
        for (name, _, shape), part in zip(about, parts, strict=True):
            self[name] = part.view(self._specs[name][0].dtype.numpy).reshape(shape)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}: {self._specs[name][0].dtype}{list(self.native.shape(k))}" for name, k in self._numbers.items()
        )
        return f"<weft.State ({shown})>"


def new_state(
    native: _rt.Model,
    package: Package,
    sizes: Mapping[str, int],
    device: DeviceTable | None = None,
    initial: Mapping[str, object] | None = None,
) -> State:
    """Returns a state of a model, on the *device* that runs it; *sizes* gives the symbolic sizes of its states.

    It begins with the values *initial*.

    Raises `InputError` where one is missing.
    """
    specs = package.state_inputs
    if not specs:
        raise InputError("the model has no state", hint='name it when you compile: state={"past_*": "present_*"}')
    whole = [_size(spec, s, sizes) for spec in specs for s in spec.shape]
    try:
        made = native.new_state(whole)
    except MemoryError:
        told = None if device is None else device.take_error()
        hint = "compile the model with less capacity"
        raise told or DeviceError("there is no memory left for a state", hint=hint) from None
    state = State(made, {spec.name: (spec, s) for spec, s in zip(specs, package.states, strict=True)}, device)
    state.begin_with(initial or {})
    return state


def _size(spec: TensorSpec, size: int | str, sizes: Mapping[str, int]) -> int:
    found = sizes.get(size) if isinstance(size, str) else size
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise InputError(f"the state {spec} needs the size {size}", hint=f"give it a number: new_state({size}=1)")
    return found


class _explained:  # noqa: N801 (a function for with statements, which costs less as a class)
    """Turns refusals of the native state, or of its device, into Weft's errors."""

    def __init__(self, device: DeviceTable | None) -> None:
        self.device = device

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _rt.Failed | MemoryError) and self.device is not None:
            told = self.device.take_error()
            if told is not None:
                raise told from None
        if isinstance(error, _rt.Failed):
            raise state_error(error.args[0]) from None
        if isinstance(error, MemoryError):
            raise DeviceError("there is no memory left for a state", hint="free states that are not needed") from None


def state_error(status: int) -> WeftError:
    """Returns the error of a state that can't be used now."""
    if status == _rt.BUSY:
        return RuntimeFailure(BUSY, hint=BUSY_HINT)
    return RuntimeFailure(SPOILT, hint=SPOILT_HINT)
