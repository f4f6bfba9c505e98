"""A loaded model: a callable from arrays to arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from weft.native import _rt
from weft.runtime.arrays import Array, bits, check_same_shape, fit_inputs, fit_outputs, order_inputs
from weft.runtime.artifact import Saved, artifact_parts, read_artifact, write_artifact
from weft.runtime.devices import DeviceTable, open_device
from weft.runtime.file_names import check_saved_name
from weft.runtime.lazy_constants import in_memory
from weft.runtime.model_state import FULL, FULL_HINT, State, new_state, state_error
from weft.runtime.package import Denormals, Package, TensorSpec, check_denormals
from weft.support.arguments import check_bool, check_threads
from weft.support.errors import ArtifactError, DeviceError, InputError, RuntimeFailure, WeftError

LESS = "give it less at a time, such as a smaller batch, or stop what else runs"


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
    ) -> list[Array]:
        """Runs the model on all of its inputs in order, and returns all of its outputs in order.

        *out* gives an array for each output, or None where a new one is to be made; the outputs are written there, without a
        copy if the array is contiguous, aligned to 64 bytes (those that a model returned are) and shares no memory with
        another. It may be an input's. A late output is copied to its array, which must have the shape that the call finds.
        *stop* is a buffer of one byte: when it is no longer 0, the call ends before its next kernel. After an error, what is in
        *out* is undefined.
        *state*, of `new_state`, has what a model with state takes from the call before, and gets what the next one takes.

        Raises `InputError` for arrays that do not fit, `RuntimeFailure` for values that break what the model assumes, and
        when it was stopped.
        """
        if out is not None and self.has_late_outputs:  # which are copied to where they are to be
            return self._run_into(fit_inputs(inputs, self.inputs), inputs, out, stop, state)
        try:
            return self._run(inputs, inputs, out, stop, state)  # arrays that fit as they are need no look from here
        except WeftError:
            raise
        except (TypeError, ValueError, BufferError):
            if _rt.handler_raised():
                raise
        fitting = fit_inputs(inputs, self.inputs)
        if out is None:
            return self._run(fitting, inputs, None, stop, state)
        return self._run_into(fitting, inputs, out, stop, state)

    def run_in(self, library: _rt.Exchange, inputs: Sequence[object]) -> list[Any]:
        """Runs the model as `run` does; its inputs may be tensors of a library, and its outputs are.

        The model has no late outputs.
        """
        try:
            return self._run(inputs, inputs, None, None, None, library)
        except WeftError:
            raise
        except (TypeError, ValueError, BufferError):
            if _rt.handler_raised():
                raise
        return self._run(fit_inputs(inputs, self.inputs), inputs, None, None, None, library)

    def _run_into(
        self,
        fitting: list[Array],
        given: Sequence[object],
        out: Sequence[object],
        stop: _rt.Buffer | None,
        state: State | None,
    ) -> list[Array]:
        """Runs the model; those outputs that can't be written where they are to be are copied there."""
        arrays = fit_outputs(out, self.outputs)
        fit = zip(arrays, self.outputs, strict=True)
        direct = [None if a is None or s.late or not a.flags.c_contiguous else bits(a) for a, s in fit]
        try:
            made = self._run(fitting, given, direct, stop, state)
        except WeftError:
            raise
        except (TypeError, ValueError):
            if _rt.handler_raised():
                raise
            made = self._run(fitting, given, None, stop, state)  # some array has a wrong shape: the right ones name it
        for k, (array, spec) in enumerate(zip(arrays, self.outputs, strict=True)):
            if array is None:
                continue
            if made[k] is not direct[k]:
                check_same_shape(array, made[k], spec)
                array[...] = made[k]
            made[k] = array
        return made

    def _run(
        self,
        arrays: Sequence[object],
        given: Sequence[object],
        out: Sequence[object] | None,
        stop: _rt.Buffer | None,
        state: State | None,
        library: _rt.Exchange | None = None,
    ) -> list[Array]:
        """Runs the native model on *arrays*, made of what was *given*."""
        try:
            if library is not None:
                return self._native.run_in(arrays, library)
            if state is not None:
                return self._native.run_with(arrays, state.native, out, stop)  # type: ignore[arg-type]
            if out is None and stop is None:
                return self._native.run(arrays)  # type: ignore[arg-type] # it refuses what is no buffer
            return self._native.run_into(arrays, out, stop)  # type: ignore[arg-type]
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
            _ = fit_inputs(inputs, self.inputs)  # names the input at fault, if a spec says so
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

        It begins with the values *initial*, and zeros for those that have none. Raises `InputError` for a model without state,
        where a size is missing, and for a value of another type or shape.
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
        native.set_states([(-1 if s.axis is None else s.axis, s.in_place) for s in package.states])
    return native


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
