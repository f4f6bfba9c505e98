"""ONNX Runtime's session and run options: each is honoured, accepted with a warning, or refused with a reason.

An option that affects results or outputs of a program and can't be honoured raises `InputError` when it is set. An option that
only steers ONNX Runtime's own threads, memory or log warns that it has no effect.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final, NoReturn

from weft.native import _rt
from weft.runtime.package import Denormals
from weft.support.errors import InputError


class GraphOptimizationLevel(IntEnum):
    """ONNX Runtime's optimization levels, mapped to `opt_level` 0 to 3 of `weft.compile`; the last two are the same."""

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
    """Whether ONNX Runtime would run operators of a model one after another or in parallel."""

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


def _no_effect_but(
    expected: tuple[object, ...], valid: Callable[[str, Any], None], why: str
) -> Callable[[str, Any], None]:
    """Returns a check that warns of values other than those *expected*, once they are *valid*: they change no result."""

    def check(name: str, value: Any) -> None:
        valid(name, value)
        if value not in expected:
            warn_no_effect(f"{name} = {value!r}", why, stacklevel=3)

    return check


def warn_no_effect(what: str, why: str, stacklevel: int = 2) -> None:
    """Warns of an option that is accepted and changes nothing; *stacklevel* says whose call it is, as for `warnings.warn`."""
    warnings.warn(f"{what} has no effect: {why}", stacklevel=stacklevel + 1)


def _is_bool(name: str, value: Any) -> None:
    if not isinstance(value, bool | int) or value not in (False, True):
        raise InputError(f"{name} is {value!r}", hint="give True or False")


def _between(lowest: int, highest: int) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise InputError(f"{name} is {value!r}", hint=f"give a whole number from {lowest} to {highest}")

    return check


def _anything(name: str, value: Any) -> None:
    """Accepts any value, for options that concern features Weft does not have, such as the prefix of log messages."""


def _one_of(kind: type[IntEnum]) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, int) or value not in list(kind):
            raise InputError(
                f"{name} is {value!r}", hint=f"use one of {', '.join(f'{kind.__name__}.{k}' for k in kind.__members__)}"
            )

    return check


Field = tuple[object, Callable[[str, Any], None]]

NO_LOG: Final = "there is no log, and errors are exceptions"
_SEQUENTIAL: Final = "a model's kernels run one after another, each on intra_op_num_threads"
_PLANNED: Final = "the memory of a call is planned when the model is compiled"

_LOGGING: Final[dict[str, Field]] = {
    "log_severity_level": (-1, _no_effect_but((-1, 2, 3, 4), _between(-1, 4), NO_LOG)),
    "log_verbosity_level": (0, _no_effect_but((0,), _at_least(0), NO_LOG)),
    "logid": ("", _anything),
}


def set_default_logger_severity(severity: int) -> None:
    """Accepts ONNX Runtime's minimum log severity, 0 (verbose) to 4; warns below 2, since Weft writes no log."""
    _no_effect_but((2, 3, 4), _between(0, 4), NO_LOG)("severity", severity)


def set_seed(seed: int) -> None:
    """Seeds the random numbers of all later calls in this process, so that they can be reproduced.

    The seed applies to all operators, of any model, that have no seed attribute; calls on several threads share one sequence.
    """
    if not -(2**63) <= int(seed) < 2**63:
        raise InputError(f"the seed {seed} has more than 64 bits", hint="give one from -2**63 to below 2**63")
    _rt.set_random_seed(int(seed))


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

    `intra_op_num_threads` is the largest number of threads that a call uses; 0, the default, stands for the CPUs available to
    the process. `graph_optimization_level` sets the effort of compilation.
    """

    intra_op_num_threads: int
    inter_op_num_threads: int
    graph_optimization_level: GraphOptimizationLevel
    execution_mode: ExecutionMode
    use_deterministic_compute: bool
    enable_profiling: bool
    profile_file_prefix: str
    optimized_model_filepath: str
    log_severity_level: int
    log_verbosity_level: int
    logid: str

    _fields: Mapping[str, Field] = {
        "intra_op_num_threads": (0, _at_least(0)),
        "inter_op_num_threads": (0, _no_effect_but((0, 1), _at_least(0), _SEQUENTIAL)),
        "graph_optimization_level": (GraphOptimizationLevel.ORT_ENABLE_ALL, _one_of(GraphOptimizationLevel)),
        "execution_mode": (
            ExecutionMode.ORT_SEQUENTIAL,
            _no_effect_but((ExecutionMode.ORT_SEQUENTIAL,), _one_of(ExecutionMode), _SEQUENTIAL),
        ),
        "use_deterministic_compute": (
            False,
            _only((False, True), "it is no bool", "results are always the same anyway"),
        ),
        "use_per_session_threads": (
            True,
            _only((True,), "each session has its own number of threads, out of one pool", "leave it True"),
        ),
        "enable_cpu_mem_arena": (True, _no_effect_but((True,), _is_bool, _PLANNED)),
        "enable_mem_pattern": (True, _no_effect_but((True,), _is_bool, _PLANNED)),
        "enable_mem_reuse": (True, _no_effect_but((True,), _is_bool, _PLANNED)),
        "enable_profiling": (False, _is_bool),
        "profile_file_prefix": ("onnxruntime_profile_", _anything),
        "optimized_model_filepath": (
            "",
            _only(("",), "there is no optimized ONNX model to write", "use weft.compile(...).save(FILE) to keep code"),
        ),
        **_LOGGING,
    }

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "free_dimensions", {})
        object.__setattr__(self, "config", {})

    free_dimensions: dict[str, int]
    """Sizes of symbolic dimensions by name, from `add_free_dimension_override_by_name`."""

    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None:
        """Gives a size to a symbolic dimension of the model's inputs."""
        _at_least(0)(f"the size of {dim_name!r}", dim_value)
        self.free_dimensions[dim_name] = dim_value

    def add_free_dimension_override_by_denotation(self, denotation: str, dim_value: int) -> None:
        """Raises `InputError`: denotations are not read."""
        refuse(
            f"the size {dim_value} of {denotation!r}",
            "denotations are not read",
            "use add_free_dimension_override_by_name with the dimension's name",
        )

    config: dict[str, str]
    """The entries that were added, from `add_session_config_entry`."""

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets an entry that Weft honours; raises `InputError` for any other, unless it asks for Weft's own behaviour."""
        if key in _SWITCHES and value not in ("0", "1"):
            raise InputError(f"the entry {key!r} is {value!r}", hint='give "0" or "1"')
        if key not in _SWITCHES and (key, value) not in _CONFIG.items():
            refuse(f"the entry {key!r}: {value!r}", "a session has no such setting", "leave it out")
        self.config[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """Returns the value set for *key*, or its default; raises `InputError` for an unknown key."""
        known = _SWITCHES | _CONFIG
        if key not in known:
            raise InputError(f"there is no entry {key!r}", hint=f"there is {', '.join(sorted(known))}")
        return self.config.get(key, known[key])

    @property
    def denormals(self) -> Denormals | None:
        """How calls treat denormal numbers; None if it was not set."""
        said = self.config.get(_DENORMALS)
        return None if said is None else "flush" if said == "1" else "keep"

    @property
    def spinning(self) -> bool:
        """Whether idle threads spin briefly before they sleep."""
        return self.get_session_config_entry(_SPINNING) == "1"

    def has_providers(self) -> bool:
        """Returns False: providers are given to a session, not to its options."""
        return False

    def register_custom_ops_library(self, path: str) -> None:
        """Raises `InputError`: custom operators compiled for ONNX Runtime can't be loaded."""
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


_DENORMALS: Final = "session.set_denormal_as_zero"
_SPINNING: Final = "session.intra_op.allow_spinning"
_SWITCHES: Final = {_DENORMALS: "0", _SPINNING: "1"}
"""Entries that are honoured, with their defaults."""

_CONFIG: Final = {
    "session.dynamic_block_base": "0",
    "session.disable_prepacking": "0",
    "session.use_env_allocators": "0",
}
"""Entries, with values, that describe Weft's own behaviour: accepted, without effect."""


_RUN_HINTS: Final = {"memory.enable_memory_arena_shrinkage": _PLANNED}
"""Entries that don't affect results, with the reason why they have no effect."""


class RunOptions(_Options):
    """Options of one call, by ONNX Runtime's names. Setting `terminate`, from any thread, ends the calls that use them."""

    log_severity_level: int
    log_verbosity_level: int
    logid: str
    only_execute_path_to_fetches: bool

    _fields: Mapping[str, Field] = {
        "only_execute_path_to_fetches": (
            False,
            _only((False,), "a model is compiled for all of its outputs", "leave it False"),
        ),
        **_LOGGING,
    }

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "stop", bytearray(1))

    stop: bytearray
    """One byte, nonzero once the calls shall end."""

    @property
    def terminate(self) -> bool:
        """Whether calls with these options end before their next kernel, and new ones at once."""
        return self.stop[0] != 0

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self.stop[0] = bool(value)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Warns that a known entry has no effect; raises `InputError` for any other."""
        if key in _RUN_HINTS:
            warn_no_effect(f"the entry {key!r}", _RUN_HINTS[key])
            return
        refuse(f"the entry {key!r}: {value!r}", "a call has no such setting", "leave it out")

    def add_active_adapter(self, adapter: object) -> None:
        """Raises `InputError`: weights come with the model."""
        refuse(
            f"the adapter {adapter!r}", "weights come with the model", "merge it into the model before it is exported"
        )
