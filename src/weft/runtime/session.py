"""`InferenceSession`: a compiled model behind ONNX Runtime's interface, for programs written for ONNX Runtime.

This module opens saved models and needs no compiler; `weft.InferenceSession` also compiles ONNX models.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, cast

import numpy as np

from weft.runtime.arrays import Array, order_inputs
from weft.runtime.artifact import Saved, is_saved
from weft.runtime.file_names import ENDING
from weft.runtime.held_values import HeldBorder
from weft.runtime.metadata import ModelMetadata, maps_of, metadata_of
from weft.runtime.model import Model, load
from weft.runtime.session_binding import IOBinding, bound_inputs, bound_outputs, fill
from weft.runtime.session_options import GraphOptimizationLevel, RunOptions, SessionOptions, refuse
from weft.runtime.session_profile import SessionProfile
from weft.runtime.session_providers import CPU_PROVIDER, check_providers
from weft.runtime.session_values import NodeArg, OrtValue, OrtValueVector, array_of, node_args
from weft.support.arguments import check_many, check_mapping
from weft.support.errors import InputError, WeftError

_PLAIN: Final = frozenset((list, tuple, bool, int, float))
"""Python scalars and lists, which are converted to arrays of the input's type."""


class InferenceSession:
    """A saved model behind ONNX Runtime's interface.

        session = weft.InferenceSession("model.onnx")
        (probabilities,) = session.run(None, {"image": image})

    The model is the path or the bytes of an ONNX file or of a model saved by Weft. `SessionOptions` and providers that can't
    be honoured raise `InputError`, or warn if they change no result. A session may be called from several threads at once, and
    after a fork.
    """

    def __init__(
        self,
        path_or_bytes: object,
        sess_options: SessionOptions | None = None,
        providers: Sequence[object] | None = None,
        provider_options: Sequence[object] | None = None,
        *,
        enable_fallback: bool = True,
        disabled_optimizers: Sequence[str] | None = None,
    ) -> None:
        """Opens a model.

        *providers* must include `CPUExecutionProvider`; all others are ignored with a warning. *enable_fallback* has no effect,
        since it concerns providers that fail during a call.
        """
        if disabled_optimizers:
            refuse(
                "disabled_optimizers",
                "they are ONNX Runtime's own",
                "use graph_optimization_level, or weft.compile(without=...)",
            )
        self._options = _checked_options(sess_options)
        check_providers(providers, provider_options)
        self._source = path_or_bytes
        self._profile = SessionProfile(self._options.profile_file_prefix) if self._options.enable_profiling else None
        with self._noted("model_loading"):
            self._model = self._open(path_or_bytes, self._options)
        self._names = [s.name for s in self._model.inputs]
        self._dtypes = [s.dtype.numpy for s in self._model.inputs]
        self._places = {s.name: k for k, s in enumerate(self._model.outputs)}
        self._border = HeldBorder(self._model.inputs, self._model.outputs)
        self._maps = [(self._places[name], labels) for name, labels in maps_of(self._model.package.notes).items()]

    @property
    def model(self) -> Model:
        """The model that the session calls."""
        return self._model

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the path of the model, which is opened again when unpickled, or the model's bytes."""
        source = bytes(self._source) if isinstance(self._source, bytearray | memoryview) else self._source
        return type(self), (source, self._options)

    def _noted(self, name: str) -> AbstractContextManager[None]:
        return nullcontext() if self._profile is None else self._profile.noted(name)

    def _open(self, source: object, options: SessionOptions) -> Model:
        """Returns the model that *source* is."""
        saved = load_saved(source, options)
        if saved is None:
            raise InputError(
                "this is no model saved by Weft, and there is no compiler here for others",
                hint="compile it where weft is installed: weft compile MODEL.onnx -o MODEL.weft",
            )
        return saved

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, object],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Runs the model; returns the outputs *output_names* in that order, or all outputs for None.

        *input_feed* maps each input's name to its array; sequences are lists of arrays, and optional values may be None. Raises
        `InputError` for inputs that do not fit, and `RuntimeFailure` for values that violate an assumption of the model, or if
        *run_options* ended the call.
        """
        border = self._border
        feed = border.tensors(input_feed) if border.is_needed else input_feed
        with self._noted("model_run"):
            made: list[Any] = self._model.run(self._in_order(feed), None, _flag(run_options))
        for place, labels in self._maps:
            made[place] = [dict(zip(labels, row, strict=True)) for row in made[place].tolist()]
        if border.is_needed:
            values = border.values(made)
            return [values[n] if n in values else made[self._place(n)] for n in output_names or border.outputs]
        if output_names is None:
            return made
        names = check_many("output_names", output_names, "give a list of names, or None for all outputs")
        return [made[self._place(name)] for name in names] if names else made

    def _in_order(self, feed: Mapping[str, object]) -> list[object]:
        """Returns the inputs in the model's order; lists and numbers as arrays, which ONNX Runtime takes too."""
        try:
            values = [feed[name] for name in self._names]
        except (KeyError, TypeError, IndexError):
            check_mapping("input_feed", feed, f"give a dict with {', '.join(map(repr, self._names))}")
            values = order_inputs((), feed, self._model.inputs)
        if len(feed) != len(values):
            order_inputs((), feed, self._model.inputs)  # says which is too many
        return [_as_array(v, k) for v, k in zip(values, self._dtypes, strict=True)] if _has_plain(values) else values

    def _place(self, name: object) -> int:
        if not isinstance(name, str) or name not in self._places:
            known = ", ".join(map(str, self._model.outputs))
            raise InputError(f"there is no output {name!r}", hint=f"the model makes ({known})")
        return self._places[name]

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Like `run`, with `OrtValue`s as inputs and outputs."""
        feed = {name: array_of(value) for name, value in input_dict_ort_values.items()}
        return [OrtValue(array) for array in self.run(output_names, feed, run_options)]

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: Sequence[OrtValue],
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[object] = (),
    ) -> None:
        """Like `run_with_ort_values`, with values in the order of their names; the outputs replace the contents of *fetches*.

        *fetch_devices* has no effect: outputs are in the processor's memory.
        """
        if len(feed_names) != len(feeds):
            raise InputError(f"{len(feeds)} values were given for {len(feed_names)} names", hint="give one for each")
        fetches[:] = self.run_with_ort_values(fetch_names, dict(zip(feed_names, feeds, strict=True)), run_options)

    def get_profiling_start_time_ns(self) -> int:
        """Returns when profiling began, in nanoseconds of `time.perf_counter_ns`; 0 if profiling is off."""
        return 0 if self._profile is None else self._profile.start

    def end_profiling(self) -> str:
        """Writes the times of the calls as a Chrome trace, and returns the file's name; "" without `enable_profiling`.

        `weft profile` and `weft bench --roofline MODEL` report the time of each kernel.
        """
        return "" if self._profile is None else self._profile.write()

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, object],
        callback: Callable[[list[Array] | None, Any, str], object],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Starts a call on a new thread, which ends with `callback(outputs, user_data, error)`; *error* is "" on success."""

        def call() -> None:
            try:
                made = self.run(output_names, input_feed, run_options)
            except WeftError as error:
                callback(None, user_data, str(error))
            else:
                callback(made, user_data, "")

        threading.Thread(target=call, name="weft-run-async").start()

    def io_binding(self) -> IOBinding:
        """Returns an empty binding for this session's inputs and outputs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs the model on the bound inputs; outputs bound to memory are written there."""
        wanted = bound_outputs(iobinding)
        if not wanted:
            raise InputError("no output is bound", hint="call bind_output for each output that is wanted")
        out = [wanted.get(name) for name in self._places] if any(a is not None for a in wanted.values()) else None
        with self._noted("model_run"):
            made = self._model.run(self._in_order(bound_inputs(iobinding)), out, _flag(run_options))
        fill(iobinding, dict(zip(self._places, made, strict=True)))

    def get_inputs(self) -> list[NodeArg]:
        """Returns the inputs in order."""
        return node_args(self._model.inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Returns the outputs in order."""
        return node_args(self._model.outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Returns none: weights are constants of the compiled model."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """Returns the model's own descriptions; raises `InputError` if an older Weft saved it."""
        return metadata_of(self._model.package.notes)

    def get_session_options(self) -> SessionOptions:
        """Returns the options that the session was made with."""
        return self._options

    def get_providers(self) -> list[str]:
        """Returns the providers that the model runs on: the processor."""
        return [CPU_PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Returns the options of each provider: none."""
        return {CPU_PROVIDER: {}}

    def set_providers(self, providers: Sequence[object], provider_options: Sequence[object] | None = None) -> None:
        """Checks a list of providers as the constructor does: the processor's must be among them."""
        check_providers(providers, provider_options)

    def disable_fallback(self) -> None:
        """Does nothing: there is one provider, and nothing to fall back to."""

    def enable_fallback(self) -> None:
        """Does nothing: there is one provider, and nothing to fall back to."""

    def __repr__(self) -> str:
        return f"<weft.InferenceSession {self._model!r}>"


def _checked_options(options: object) -> SessionOptions:
    if options is None:
        return SessionOptions()
    if not isinstance(options, SessionOptions):
        kind = type(options)
        raise InputError(
            f"sess_options is a {kind.__module__}.{kind.__qualname__}, whose settings can't all be read",
            hint="make a weft.SessionOptions() and set the same there",
        )
    return options


def _has_plain(values: Sequence[object]) -> bool:
    return not _PLAIN.isdisjoint(map(type, values))


def _as_array(value: object, dtype: np.dtype[Any]) -> object:
    return np.asarray(value, dtype) if type(value) in _PLAIN else value


def _flag(options: RunOptions | None) -> bytearray | None:
    if options is None:
        return None
    if not isinstance(options, RunOptions):
        raise InputError(
            f"run_options is a {type(options).__module__}.{type(options).__qualname__}", hint="make a weft.RunOptions()"
        )
    return options.stop


def load_saved(source: object, options: SessionOptions) -> Model | None:
    """Returns the saved model that *source* is the path or the bytes of; None if it is no saved model.

    Raises `InputError` for options that only a compilation can honour, `ArtifactError` for a damaged file.
    """
    named = isinstance(source, str | os.PathLike) and os.fspath(source).endswith(ENDING)
    if not named and not is_saved(source):
        return None
    _check_compiled(options)
    threads = options.intra_op_num_threads or None
    return load(cast("Saved", source), threads=threads, denormals=options.denormals, spinning=options.spinning)


def _check_compiled(options: SessionOptions) -> None:
    """Raises `InputError` for options that a compiled model can't take."""
    hint = "ask for it when the model is compiled, or open the ONNX model"
    if options.graph_optimization_level != GraphOptimizationLevel.ORT_ENABLE_ALL:
        refuse("graph_optimization_level", "the model is compiled already", hint)
    if options.free_dimensions:
        refuse(f"sizes for {', '.join(options.free_dimensions)}", "the model is compiled already", hint)
