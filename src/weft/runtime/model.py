"""A loaded model: a callable from arrays to arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from weft.native import _rt
from weft.runtime.arrays import Array, bits, check_same_shape, order_inputs
from weft.runtime.artifact import Saved, artifact_parts, read_artifact, write_artifact
from weft.runtime.device_arrays import DeviceArray, fit_call, fit_targets
from weft.runtime.devices import DeviceTable, open_device
from weft.runtime.file_names import check_saved_name
from weft.runtime.lazy_constants import in_memory
from weft.runtime.model_state import FULL, FULL_HINT, State, new_state, state_error
from weft.runtime.package import Denormals, Package, StateSpec, TensorSpec, check_denormals
from weft.support.arguments import check_bool, check_threads
from weft.support.dtypes import from_numpy
from weft.support.errors import ArtifactError, DeviceError, InputError, RuntimeFailure, WeftError

LESS = "give it less at a time, such as a smaller batch, or stop what else runs"


class _How(NamedTuple):
    """How a call is run, beside its inputs."""

    out: Sequence[object] | None = None
    stop: _rt.Buffer | None = None
    state: State | None = None
    on_device: bool = False
    library: _rt.Exchange | None = None


class Model:
    """A compiled model, called with its inputs in order or by name.

    Inputs are NumPy arrays, torch tensors, or any arrays in the CPU's memory that have DLPack; their dtypes must be the
    model's own. One output is returned as a NumPy array, several as a tuple in the model's order. A model is immutable
    and may be called from several threads at once. Raises `InputError` for inputs that do not fit, `RuntimeFailure` for
    values that break what the model assumes. A symbolic size may be 0 where all outputs are then empty.
    Ctrl-C ends a long call between two of its kernels, with `KeyboardInterrupt`.

    `threads` is the most threads that a call uses. `states` are the values that live across calls, in a `State`: `run` takes it.
    """

    def __init__(self, package: Package, *, threads: int | None = None, spinning: bool = True) -> None:
        """Loads the package; *threads* bounds those used in a call, and never changes its results.

        Threads that have no work look out for more for a while, unless not *spinning*: then they sleep at once.
        """
        threads = check_threads(threads)
        self.package = replace(package, constants=in_memory(package.constants))
        self.inputs, self.outputs, self.states = package.called_inputs, package.called_outputs, package.state_inputs
        self.threads = _rt.threads(threads or 0)
        self._options = {"threads": threads, "spinning": spinning}  # as `load` takes them
        self._dtypes = [spec.dtype.numpy for spec in (*package.inputs, *package.outputs)]  # says so if one is missing
        self.has_late_outputs = any(spec.late for spec in self.outputs)
        self._names = tuple([spec.name for spec in self.inputs])
        self._device = _device_of(self.package)
        self._native = _load(self.package, self.threads, check_bool("spinning", spinning), self._device)

    def __call__(self, *args: object, **named: object) -> Array | tuple[Array, ...]:
        """Runs the model."""
        if named or len(args) != len(self._names):
            args = self._in_order(args, named)
        outputs = self.run(args)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @property
    def device(self) -> DeviceTable | None:
        """The device that runs the kernels; None where the processor does."""
        return self._device

    def _in_order(self, args: tuple[object, ...], named: Mapping[str, object]) -> tuple[object, ...]:
        """Returns the inputs of a call in order; those given by name alone, the common case, without a closer look."""
        if not args and len(named) == len(self._names):
            with suppress(KeyError):
                return tuple([named[name] for name in self._names])
        return tuple(order_inputs(args, named, self.inputs))

    def run(
        self,
        inputs: Sequence[object],
        out: Sequence[object] | None = None,
        stop: _rt.Buffer | None = None,
        state: State | None = None,
        *,
        on_device: bool = False,
    ) -> list[Any]:
        """Runs the model on all of its inputs in order, and returns all of its outputs in order.

        *out* gives an array for each output, or None where a new one is to be made; the outputs are written there, without a
        copy if the array is contiguous, aligned to 64 bytes (those that a model returned are) and shares no memory with
        another. It may be an input's. A late output is copied to its array, which must have the shape that the call finds.
        *stop* is a buffer of one byte: when it is no longer 0, the call ends before its next kernel. After an error, what is in
        *out* is undefined.
        *state*, of `new_state`, has what a model with state takes from the call before, and gets what the next one takes.
        Arrays in the memory of the model's device, inputs and *out*, are used where they are: a `DeviceArray`, or a tensor of
        another library through DLPack. *on_device* has new outputs stay there, as `DeviceArray`s; they are computed when the call
        returns.

        Raises `InputError` for arrays that do not fit, `RuntimeFailure` for values that break what the model assumes, and
        when it was stopped.
        """
        how = _How(out, stop, state, on_device)
        if on_device:
            self._check_device("its outputs can't stay there")
        if out is not None and self.has_late_outputs:  # which are copied to where they are to be
            return self._run_into(self._fitting(inputs), inputs, how)
        try:
            return self._run(inputs, inputs, how)  # arrays that fit as they are need no look from here
        except WeftError:
            raise
        except (TypeError, ValueError, BufferError):
            if _rt.handler_raised():
                raise
        fitting = self._fitting(inputs)
        return self._run(fitting, inputs, how) if out is None else self._run_into(fitting, inputs, how)

    def _fitting(self, inputs: Sequence[object]) -> list[object]:
        """Returns arrays for all inputs that the native model takes."""
        return fit_call(list(inputs), self.inputs, self._device)

    def _check_device(self, why: str) -> DeviceTable:
        if self._device is None:
            raise InputError(f"the model runs on no device: {why}", hint='compile it for one, with target="cuda"')
        return self._device

    def to_device(self, value: object) -> DeviceArray:
        """Returns a copy of an array in the memory of the model's device, for any call of it.

        Raises `InputError` where the processor runs the model.
        """
        self._check_device("there is no memory of one")
        array = np.asarray(value, order="C")
        made = self._native.new_array(array.shape, from_numpy(array.dtype).code)
        made.write(bits(array))
        return made

    def run_in(self, library: _rt.Exchange, inputs: Sequence[object]) -> list[Any]:
        """Runs the model as `run` does; its inputs may be tensors of a library, and its outputs are.

        The model has no late outputs.
        """
        how = _How(library=library)
        try:
            return self._run(inputs, inputs, how)
        except WeftError:
            raise
        except (TypeError, ValueError, BufferError):
            if _rt.handler_raised():
                raise
        return self._run(self._fitting(inputs), inputs, how)

    def _run_into(self, fitting: Sequence[object], given: Sequence[object], how: _How) -> list[Any]:
        """Runs the model; those outputs that can't be written where they are to be are copied there."""
        assert how.out is not None
        arrays = fit_targets(list(how.out), self.outputs, self._device)
        direct = [_direct(a, spec) for a, spec in zip(arrays, self.outputs, strict=True)]
        try:
            made = self._run(fitting, given, how._replace(out=direct))
        except WeftError:
            raise
        except (TypeError, ValueError):
            if _rt.handler_raised():
                raise
            made = self._run(
                fitting, given, how._replace(out=None)
            )  # some array has a wrong shape: the right ones name it
        refused: list[TensorSpec] = []
        for k, (array, spec) in enumerate(zip(arrays, self.outputs, strict=True)):
            if array is not None and made[k] is not direct[k]:
                check_same_shape(array, made[k], spec)
                if isinstance(array, np.ndarray):
                    array[...] = made[k]
                else:
                    refused.append(spec)
        if refused:
            raise InputError(
                f"an array on a device can't be written for the output {refused[0]}", hint="give None for it"
            )
        return [m if array is None else array for array, m in zip(arrays, made, strict=True)]

    def _run(self, arrays: Sequence[object], given: Sequence[object], how: _How) -> list[Any]:
        """Runs the native model on *arrays*, made of what was *given*."""
        inputs: Any = arrays  # the native model refuses what is no array that fits
        out: Any = how.out
        native, state = self._native, None if how.state is None else how.state.native
        try:
            if how.library is not None:
                return native.run_in(inputs, how.library)
            if how.on_device:
                return native.run_on_device(inputs, out, how.stop, state)
            if state is not None:
                return native.run_with(inputs, state, out, how.stop)
            if out is None and how.stop is None:
                return native.run(inputs)
            return native.run_into(inputs, out, how.stop)
        except _rt.Failed as failed:
            raise self._explain(failed, given) from None
        except MemoryError:
            raise DeviceError("there is no memory left for the model's outputs", hint=LESS) from None

    def _explain(self, failed: _rt.Failed, inputs: Sequence[object]) -> WeftError:
        """Returns the error behind a failed call: a shape that does not fit, or a check in the model's own code."""
        status, entry, index, detail = failed.args
        if self._device is not None and (error := self._device.take_error()) is not None:
            raise error
        if status == _rt.NO_MEMORY:
            return DeviceError("there is no memory left to run the model in", hint=LESS)
        if status == _rt.BUSY or status == _rt.SPOILT:
            return state_error(status)
        if status == _rt.BAD_INPUT:
            return self._other_state()
        if status == _rt.STOPPED:
            return RuntimeFailure("the call was stopped by its caller", hint="its outputs were not computed")
        if entry == "plan":
            _ = self._fitting(inputs)  # names the input at fault, if a spec says so
        message = f"status {status}"
        if index in self.package.asserts:
            message = self.package.asserts[index].format(*detail)
        signature = ", ".join(map(str, self.inputs))
        if entry == "plan":
            is_full = bool(self.states) and message.endswith(FULL)
            return InputError(message, hint=FULL_HINT if is_full else f"the model takes ({signature})")
        return RuntimeFailure(f"the model stopped while it ran: {message}", hint="check the values of its inputs")

    def _other_state(self) -> InputError:
        """Returns the error of a call without the state that it needs, or with another model's."""
        names = ", ".join(spec.name for spec in self.states)
        if not names:
            return InputError("the model has no state", hint="run it without one")
        return InputError(
            f"the call needs a state of this model, for {names}", hint="run(inputs, state=model.new_state())"
        )

    def new_state(self, initial: Mapping[str, object] | None = None, **sizes: int) -> State:
        """Returns what the calls of one conversation take and leave; *sizes* gives the states' symbolic sizes by name.

        It begins with the values *initial*, else with those that the model gives, else with zeros. Raises `InputError` for a
        model without state, where a size is missing, and for a value of another type or shape.
        """
        return new_state(self._native, self.package, sizes, self._device, initial)

    def load_state(self, path: str | os.PathLike[str], **sizes: int) -> State:
        """Returns the state in a file that `State.save` wrote; raises `ArtifactError` for any other file."""
        made = self.new_state(None, **sizes)
        made.restore(path)
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as one file that `weft.load` reads, here or on any machine of the same target.

        The file appears whole or not at all; where *path* is a symbolic link, what it points to is replaced. Raises
        `ArtifactError` where it can't be written, and for a name that says it is something else, such as `model.so`.
        """
        check_saved_name(path)
        write_artifact(self.package, path)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the model as the bytes that `save` writes, which are checked when they are loaded."""
        return _from_bytes, (b"".join(artifact_parts(self.package)), self._options)

    def __repr__(self) -> str:
        signature = ", ".join(map(str, self.inputs))
        return f"<weft.Model ({signature}) -> ({', '.join(map(str, self.outputs))})>"


def _direct(array: Any, spec: TensorSpec) -> object:
    """Returns what the native model may write an output to; None where it is copied afterwards."""
    if array is None or spec.late or (isinstance(array, np.ndarray) and not array.flags.c_contiguous):
        return None
    return bits(array) if isinstance(array, np.ndarray) else array


def _device_of(package: Package) -> DeviceTable | None:
    """Returns the device of a package with kernels for one, which are compiled for it, and the constants in its memory."""
    code = package.replay.device if package.replay is not None else None
    if code is None:
        return None
    assert isinstance(package.constants, _rt.Block)
    return DeviceTable(open_device(code.api, code.source, code.kernels, code.binaries), package.constants)


def _load(package: Package, threads: int, spinning: bool, device: DeviceTable | None = None) -> _rt.Model:
    """Returns the native model of a package whose constants are packed."""
    ins, outs, constants = _codes(package.inputs), _codes(package.outputs), in_memory(package.constants)
    flush = package.denormals == "flush"
    if package.replay is not None:
        program, callees = package.replay.program, package.replay.callees
        devices = [] if device is None else [device]
        try:
            made = _rt.Model(
                program, callees, constants, ins, outs, threads=threads, flush=flush, spin=spinning, devices=devices
            )
        except ValueError as refused:  # the native runtime has checked the program
            raise ArtifactError(str(refused), hint="compile the model again") from None
        return _with_states(made, package)
    image = package.image if isinstance(package.image, _rt.Image) else _rt.Image(package.image, package.readonly)
    made = _rt.Model(image, package.plan, package.main, constants, ins, outs, threads, flush, spinning)
    return _with_states(made, package)


def _with_states(native: _rt.Model, package: Package) -> _rt.Model:
    """Tells a native model which of its inputs and outputs are states."""
    if package.states:
        native.set_states([_state_row(s) for s in package.states])
    return native


def _state_row(s: StateSpec) -> tuple[int, bool, int, int]:
    """Returns a state as the native runtime takes it."""
    offset, rows = (-1, 0) if s.initial is None else (s.initial.offset, s.initial.rows)
    return -1 if s.axis is None else s.axis, s.in_place, offset, rows


def _codes(specs: Sequence[TensorSpec]) -> list[tuple[int, int]]:
    """Returns the specs as the native runtime takes them."""
    return [(spec.dtype.code, len(spec.shape)) for spec in specs]


def load(
    path: Saved,
    *,
    threads: int | None = None,
    copy: bool = False,
    verify: bool | None = None,
    denormals: Denormals | None = None,
    spinning: bool = True,
) -> Model:
    """Loads a saved model from its path or its bytes; needs no compiler.

    A saved model is a program: load only files that you would execute.

    A file's weights are mapped, so the file may be replaced or deleted, but not written to, while the model lives; with *copy*
    they become memory of this process, in huge pages where the system has them. Without *verify* the checksum of the weights
    is not computed; all else is always checked, that the file is whole among it. By default that is so for files of more than
    256 MiB, which need not be read then: what no call uses is never in memory. *denormals*, "keep" or "flush", replaces what
    the model was compiled for; what was computed when it was compiled stays as it is. Without *spinning*, threads that have no
    work sleep at once: calls are slower, and leave the processors to others. Raises `ArtifactError` for a damaged file, or one
    made for another machine, `InputError` for a *path* that is neither a path nor bytes.
    """
    threads = check_threads(threads)
    copy, verify = check_bool("copy", copy), None if verify is None else check_bool("verify", verify)
    package = read_artifact(path, threads=threads, copy=copy, verify=verify)
    if denormals is not None:
        package = replace(package, denormals=check_denormals(denormals))
    return Model(package, threads=threads, spinning=spinning)


def _from_bytes(saved: bytes, options: Mapping[str, Any]) -> Model:
    """Unpickles a model; *options* are those of `load`."""
    return load(saved, **options)
