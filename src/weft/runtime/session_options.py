"""What may be asked of a session: ONNX Runtime's options, each either honoured or refused with a reason.

Nothing is accepted that has no effect: an option that can't be honoured raises `InputError` where it is set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final, NoReturn

from weft.support.errors import InputError


class GraphOptimizationLevel(IntEnum):
    """How hard to try when a model is compiled: `opt_level` 0 to 3 of `weft.compile`; the last two are the same."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99

    @property
    def opt_level(self) -> int:
        """The level as `weft.compile` takes it."""
        return min(int(self), 3)


class ExecutionMode(IntEnum):
    """How the operators of a model follow one another."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


def refuse(what: str, why: str, hint: str) -> NoReturn:
    """Raises `InputError` for an option that can't be honoured."""
    raise InputError(f"{what} can't be honoured: {why}", hint=hint)


def _at_least(lowest: int) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
            raise InputError(f"{name} is {value!r}", hint=f"give a whole number, {lowest} or more")

    return check


def _only(allowed: tuple[object, ...], why: str, hint: str) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if not any(value == a and isinstance(value, type(a)) for a in allowed):
            refuse(f"{name} = {value!r}", why, hint)

    return check


def _anything(name: str, value: Any) -> None:
    """Checks nothing: the option is about what never happens here, such as the prefix of messages that aren't written."""


def _one_of(kind: type[IntEnum]) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, int) or value not in list(kind):
            raise InputError(
                f"{name} is {value!r}", hint=f"use one of {', '.join(f'{kind.__name__}.{k}' for k in kind.__members__)}"
            )

    return check


Field = tuple[object, Callable[[str, Any], None]]

_LOGGING: Final[dict[str, Field]] = {
    "log_severity_level": (
        -1, _only((-1, 2, 3, 4), "a session writes no log", "leave it, or set 2 (warnings) to 4; errors are exceptions")
    ),
    "log_verbosity_level": (0, _only((0,), "a session writes no log", "leave it at 0")),
    "logid": ("", _anything),
}  # fmt: skip


class _Options:
    """Named values, each with a default and a check that runs when it is set."""

    _fields: Mapping[str, Field] = {}

    def __init__(self) -> None:
        for name, (default, _) in self._fields.items():
            object.__setattr__(self, name, default)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
            return
        if name not in self._fields:
            raise InputError(
                f"{type(self).__name__} has no option {name!r} that could be honoured",
                hint=f"it has {', '.join(sorted(self._fields))}",
            )
        self._fields[name][1](name, value)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        changed = {n: getattr(self, n) for n, (default, _) in self._fields.items() if getattr(self, n) != default}
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in changed.items())})"


class SessionOptions(_Options):
    """Options of a session, by ONNX Runtime's names.

    `intra_op_num_threads` is the most threads that a call of this session uses; 0, the default, stands for the processors
    that the process may use. `graph_optimization_level` says how hard to try when a model is compiled.
    """

    intra_op_num_threads: int
    inter_op_num_threads: int
    graph_optimization_level: GraphOptimizationLevel
    execution_mode: ExecutionMode
    use_deterministic_compute: bool
    enable_profiling: bool
    optimized_model_filepath: str
    log_severity_level: int
    log_verbosity_level: int
    logid: str

    _fields: Mapping[str, Field] = {
        "intra_op_num_threads": (0, _at_least(0)),
        "inter_op_num_threads": (
            0,
            _only((0, 1), "a model's kernels run one after another", "set 0 or 1, and intra_op_num_threads for the threads"),
        ),
        "graph_optimization_level": (GraphOptimizationLevel.ORT_ENABLE_ALL, _one_of(GraphOptimizationLevel)),
        "execution_mode": (
            ExecutionMode.ORT_SEQUENTIAL,
            _only((ExecutionMode.ORT_SEQUENTIAL, 0), "a model's kernels run one after another", "use ORT_SEQUENTIAL"),
        ),
        "use_deterministic_compute": (False, _only((False, True), "it is no bool", "results are always the same anyway")),
        "use_per_session_threads": (
            True, _only((True,), "each session has its own number of threads, out of one pool", "leave it True")
        ),
        "enable_cpu_mem_arena": (True, _only((True,), "a call's memory is planned, and kept", "leave it True")),
        "enable_mem_pattern": (True, _only((True,), "a call's memory is planned, and kept", "leave it True")),
        "enable_mem_reuse": (True, _only((True,), "a call's memory is planned, and kept", "leave it True")),
        "enable_profiling": (
            False, _only((False,), "a session has no profiler", "use `weft bench --roofline MODEL` for the time of each kernel")
        ),
        "profile_file_prefix": ("onnxruntime_profile_", _anything),
        "optimized_model_filepath": (
            "", _only(("",), "there is no optimized ONNX model to write", "use weft.compile(...).save(FILE) to keep code")
        ),
        **_LOGGING,
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "free_dimensions", {})

    free_dimensions: dict[str, int]
    """Sizes of symbolic dimensions by name, from `add_free_dimension_override_by_name`."""

    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None:
        """Gives a size to a symbolic dimension of the model's inputs."""
        _at_least(1)(f"the size of {dim_name!r}", dim_value)
        self.free_dimensions[dim_name] = dim_value

    def add_free_dimension_override_by_denotation(self, denotation: str, dim_value: int) -> None:
        """Raises `InputError`: denotations are not read."""
        refuse(
            f"the size {dim_value} of {denotation!r}", "denotations are not read",
            "use add_free_dimension_override_by_name with the dimension's name",
        )  # fmt: skip

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Raises `InputError`, but for an entry that asks for what is so anyway."""
        if (key, value) not in _CONFIG:
            refuse(f"the entry {key!r}: {value!r}", "a session has no such setting", "leave it out")

    def get_session_config_entry(self, key: str) -> str:
        """Returns the value that always holds for *key*; raises `InputError` if there is none."""
        if key not in dict(_CONFIG):
            raise InputError(f"there is no entry {key!r}", hint=f"there is {', '.join(sorted(dict(_CONFIG)))}")
        return dict(_CONFIG)[key]

    def register_custom_ops_library(self, path: str) -> None:
        """Raises `InputError`: operators come from Weft alone."""
        refuse(f"the library {path!r}", "its operators are compiled for ONNX Runtime", "add the operators to Weft")

    def add_initializer(self, name: str, ort_value: object) -> None:
        """Raises `InputError`: weights come with the model."""
        refuse(f"the initializer {name!r}", "weights come with the model", "put it into the model, or make it an input")

    def add_external_initializers(self, names: object, ort_values: object) -> None:
        """Raises `InputError`: weights come with the model."""
        refuse(f"the initializers {names!r}", "weights come with the model", "load the model from its path")

    def __repr__(self) -> str:
        sizes = f" with {self.free_dimensions}" if self.free_dimensions else ""
        return super().__repr__() + sizes


_CONFIG: Final = (
    ("session.set_denormal_as_zero", "0"),
    ("session.dynamic_block_base", "0"),
    ("session.disable_prepacking", "0"),
    ("session.use_env_allocators", "0"),
)
"""Entries that ask for what is so anyway."""


class RunOptions(_Options):
    """Options of one call, by ONNX Runtime's names. Setting `terminate`, from any thread, ends the calls that use them."""

    log_severity_level: int
    log_verbosity_level: int
    logid: str
    only_execute_path_to_fetches: bool

    _fields: Mapping[str, Field] = {
        "only_execute_path_to_fetches": (
            False, _only((False,), "a model is compiled for all of its outputs", "leave it False")
        ),
        **_LOGGING,
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "stop", bytearray(1))

    stop: bytearray
    """One byte, not 0 once the calls are to end."""

    @property
    def terminate(self) -> bool:
        """Whether calls with these options end before their next kernel, and new ones at once."""
        return self.stop[0] != 0

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self.stop[0] = bool(value)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Raises `InputError`: a call has no settings by text."""
        refuse(f"the entry {key!r}: {value!r}", "a call has no such setting", "leave it out")

    def add_active_adapter(self, adapter: object) -> None:
        """Raises `InputError`: weights come with the model."""
        refuse(
            f"the adapter {adapter!r}", "weights come with the model", "merge it into the model before it is exported"
        )


CPU_PROVIDER: Final = "CPUExecutionProvider"


def get_available_providers() -> list[str]:
    """Returns what models can be run on: the processor alone."""
    return [CPU_PROVIDER]


def check_providers(providers: object, provider_options: object) -> None:
    """Raises `InputError` for a list of providers other than the processor's own, or with options for it."""
    if providers is None:
        if provider_options:
            refuse(f"provider_options = {provider_options!r}", "there are no providers", "leave it out")
        return
    if isinstance(providers, str) or not isinstance(providers, list | tuple):
        raise InputError(f"providers is {providers!r}", hint=f"give a list, such as [{CPU_PROVIDER!r}]")
    given = (
        list(provider_options) if isinstance(provider_options, list | tuple) else [provider_options] * len(providers)
    )
    if len(given) != len(providers):
        raise InputError(f"{len(providers)} providers have {len(given)} provider_options", hint="give one for each")
    for provider, options in zip(providers, given, strict=True):
        name, more = provider if isinstance(provider, tuple) and len(provider) == 2 else (provider, {})
        if name != CPU_PROVIDER:
            refuse(f"the provider {name!r}", f"models run on {CPU_PROVIDER} alone", f"use providers=[{CPU_PROVIDER!r}]")
        if options or more:
            refuse(f"{options or more!r} for {name}", "it has no options", "leave them out")
