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

LESS = "give it less at a time, such as a smaller batch, or stop other processes"


class _How(NamedTuple):
    """The arguments of a call other than its inputs."""

    out: Sequence[object] | None = None
    stop: _rt.Buffer | None = None
    state: State | None = None
    on_device: bool = False
    library: _rt.Exchange | None = None


class Model:
    """A compiled model, called with its inputs in order or by name.

    Inputs are NumPy arrays, PyTorch tensors, or any arrays in CPU memory that support DLPack, with exactly the model's data
    types. A single output is returned as a NumPy array, several as a tuple in the model's order. A symbolic size may be 0 if
    all outputs are then empty. A model is immutable and may be called from several threads at once. Ctrl-C ends a long call
    between two kernels, with `KeyboardInterrupt`.

    `threads` is the largest number of threads that a call uses. `states` describes the values that live across calls; `run`
    takes them as a `State`.

    Calls raise `InputError` for inputs that do not fit the signature, and `RuntimeFailure` for values that violate an
    assumption of the model, such as an index out of range.
    """

    def __init__(self, package: Package, *, threads: int | None = None, spinning: bool = True) -> None:
        """Loads *package*. *threads* bounds the threads of a call and never changes its results.

        With *spinning*, idle threads spin briefly before they sleep.
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
        """The device that runs the kernels; None if the CPU does."""
        return self._device

    def _in_order(self, args: tuple[object, ...], named: Mapping[str, object]) -> tuple[object, ...]:
        """Returns the inputs of a call in order; fast for the common case, all inputs by name."""
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

        *out* has an array for each output, or None for a new one. An output is written without a copy if its array is
        contiguous, aligned to 64 bytes (arrays returned by a model are) and overlaps no other array of *out*; it may be one of
        the inputs. An output of data-dependent shape is copied to its array, which must have exactly the shape that the call
        computes. After an error, the contents of *out* are undefined.

        *stop* is a buffer of one byte: once it is nonzero, the call ends before its next kernel. *state*, from `new_state`,
        holds the state of the previous call, and is updated in place.

        Inputs and *out* in the memory of the model's device, as `DeviceArray`s or as tensors of another library through
        DLPack, are used without a copy. With *on_device*, new outputs stay in device memory, as `DeviceArray`s, complete when
        the call returns.

        Raises `InputError` for arrays that do not fit, and `RuntimeFailure` for values that violate an assumption of the model,
        or if the call was stopped.
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
        """Returns the inputs as arrays that the native model accepts."""
        return fit_call(list(inputs), self.inputs, self._device)

    def _check_device(self, why: str) -> DeviceTable:
        if self._device is None:
            raise InputError(f"the model runs on no device: {why}", hint='compile it for one, with target="cuda"')
        return self._device

    def to_device(self, value: object) -> DeviceArray:
        """Returns a copy of an array in the memory of the model's device, to be an input of any number of calls.

        Raises `InputError` if the model runs on the CPU.
        """
        self._check_device("there is no memory of one")
        array = np.asarray(value, order="C")
        made = self._native.new_array(array.shape, from_numpy(array.dtype).code)
        made.write(bits(array))
        return made

    def run_in(self, library: _rt.Exchange, inputs: Sequence[object]) -> list[Any]:
        """Runs the model like `run`; inputs may be tensors of *library*, and all outputs are.

        The model must have no outputs of data-dependent shape.
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
        """Runs the model into `how.out`; outputs that can't be written in place are copied afterwards."""
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
        """Runs the native model on *arrays*; *given* are the arguments of the call, for error messages."""
        inputs: Any = arrays  # the native model refuses arguments that are no fitting arrays
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
        """Returns the error that explains a failed call: a mismatched shape, or a failed check in the model's code."""
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
        """Returns the error of a call without its state, or with the state of another model."""
        names = ", ".join(spec.name for spec in self.states)
        if not names:
            return InputError("the model has no state", hint="run it without one")
        return InputError(
            f"the call needs a state of this model, for {names}", hint="run(inputs, state=model.new_state())"
        )

    def new_state(self, initial: Mapping[str, object] | None = None, **sizes: int) -> State:
        """Returns a new state for a sequence of calls; *sizes* gives the states' symbolic sizes by name.

        States start as the arrays of *initial*, by name, else as the values that the model gives, else as zeros. Raises
        `InputError` if the model has no state, if a size is missing, or if an array has a wrong type or shape.
        """
        return new_state(self._native, self.package, sizes, self._device, initial)

    def load_state(self, path: str | os.PathLike[str], **sizes: int) -> State:
        """Returns a state read from a file that `State.save` wrote; raises `ArtifactError` for any other file."""
        made = self.new_state(None, **sizes)
        made.restore(path)
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to one file that `weft.load` reads, here or on any machine that the target covers.

        The file is replaced atomically; if *path* is a symbolic link, its target is. Raises `ArtifactError` if the file can't
        be written, or if its suffix is that of another kind of file, such as `model.so`.
        """
        check_saved_name(path)
        write_artifact(self.package, path)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the model as the bytes that `save` writes; unpickling checks them."""
        return _from_bytes, (b"".join(artifact_parts(self.package)), self._options)

    def __repr__(self) -> str:
        signature = ", ".join(map(str, self.inputs))
        return f"<weft.Model ({signature}) -> ({', '.join(map(str, self.outputs))})>"


def _direct(array: Any, spec: TensorSpec) -> object:
    """Returns the memory that the native model can write an output to; None if the output has to be copied afterwards."""
    if array is None or spec.late or (isinstance(array, np.ndarray) and not array.flags.c_contiguous):
        return None
    return bits(array) if isinstance(array, np.ndarray) else array


def _device_of(package: Package) -> DeviceTable | None:
    """Opens the device of a package, compiles the kernels for it and copies the constants to it; None for a CPU package."""
    code = package.replay.device if package.replay is not None else None
    if code is None:
        return None
    assert isinstance(package.constants, _rt.Block)
    device = open_device(code.api, code.source, code.kernels, code.binaries)
    return DeviceTable(device, package.constants, package.arena or 0)


def _load(package: Package, threads: int, spinning: bool, device: DeviceTable | None = None) -> _rt.Model:
    """Returns the native model of a package whose constants are in memory."""
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
    """Declares the states of a package to its native model, which is returned."""
    if package.states:
        native.set_states([_state_row(s) for s in package.states])
    return native


def _state_row(s: StateSpec) -> tuple[int, bool, int, int]:
    """Returns a state as the native runtime takes it."""
    offset, rows = (-1, 0) if s.initial is None else (s.initial.offset, s.initial.rows)
    return -1 if s.axis is None else s.axis, s.in_place, offset, rows


def _codes(specs: Sequence[TensorSpec]) -> list[tuple[int, int]]:
    """Returns the data type code and the rank of each spec, for the native runtime."""
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

    *threads* bounds the threads of a call, and *spinning* lets idle threads spin briefly before they sleep, as in
    `weft.compile`.

    The weights are memory-mapped: while the model lives, the file may be replaced or deleted, but not modified. With *copy*
    they are read into memory, in huge pages if the system has them.

    *verify* checks the checksum of the weights, which reads all of them; by default only files of up to 256 MiB are verified.
    Everything else, such as the length of the file, is always checked.

    *denormals*, "keep" or "flush", overrides the choice made at compile time; constants computed then do not change.

    Raises `ArtifactError` for a damaged file or one made for another machine, and `InputError` if *path* is neither a path nor
    bytes.
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
