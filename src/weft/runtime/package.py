"""A compiled model as data: code, constants, and the signature of a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from weft.native import _rt
from weft.runtime.lazy_constants import Constants
from weft.support.dim import Dim
from weft.support.dtypes import DType, handle
from weft.support.errors import InputError
from weft.support.text import printable_line

Denormals: TypeAlias = Literal["keep", "flush"]
"""The handling of denormal floats in calls: kept, as in IEEE 754, or flushed to zero."""


def check_denormals(value: object) -> Denormals:
    """Returns *value* if it is one of those; raises `InputError` for others."""
    if value == "keep" or value == "flush":
        return value
    raise InputError(f"denormals is {value!r}", hint='use "keep" or "flush"')


@dataclass(frozen=True)
class TensorSpec:
    """An input or output: its name, element type, and dimensions, a string for one that is known only in a call.

    Those of an output that is `late` are known only when the call has run: they depend on the values of inputs. `ranges` are the
    sizes that named dimensions of an input may have, by name, where the model was compiled for a range of them.
    """

    name: str
    dtype: DType
    shape: tuple[int | str, ...]
    late: bool = False
    ranges: Mapping[str, Dim] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        kind = "string" if self.dtype is handle else self.dtype
        return printable_line(f"{self.name}: {kind}[{', '.join(map(str, self.shape))}]")


@dataclass(frozen=True)
class InitialValue:
    """The value that a state begins with: at *offset* in the constants, and of so many *rows* where the state grows, else 0."""

    offset: int
    rows: int


@dataclass(frozen=True)
class StateSpec:
    """A state, one of the last inputs and of the last outputs of a model.

    It grows along *axis*, where the input's size is its capacity; None for one whose shape stays. One that is not written
    *in_place* has two buffers, from one of which a call reads while it writes to the other. It begins with *initial*, or with
    zeros and without rows.
    """

    axis: int | None
    in_place: bool
    initial: InitialValue | None = None


@dataclass(frozen=True)
class DeviceCode:
    """The kernels that a device runs: the kind of device, their source, and their names there, by the number of the callee.

    `binaries` is the machine code that each is in, where the device takes that instead of a source.
    """

    api: str
    source: str
    kernels: tuple[str, ...]
    binaries: tuple[bytes, ...] = ()

    @property
    def nbytes(self) -> int:
        """The bytes of the kernels: of their source, or of the machine code."""
        return len(self.source.encode()) + sum(map(len, set(self.binaries)))


@dataclass(frozen=True)
class ProcessorCode:
    """The kernels that the host's processor runs beside a device: their image, code up to *readonly*, and where each begins."""

    image: _rt.Image
    readonly: int | None
    offsets: tuple[int, ...]

    @property
    def callees(self) -> tuple[tuple[_rt.Image, int], ...]:
        """The kernels as callees of a host program."""
        return tuple([(self.image, offset) for offset in self.offsets])


@dataclass(frozen=True)
class Replay:
    """A host program as bytes that are replayed, and where its callees are: the image of a module, and an offset in it.

    Where there is a *device*, its space is 1, and the first callees are kernels of it, without an image; those of the *processor*
    come behind them.
    """

    program: bytes
    callees: tuple[tuple[_rt.Image | None, int], ...]
    device: DeviceCode | None = None
    processor: ProcessorCode | None = None


@dataclass(frozen=True)
class Package:
    """A compiled model, ready to be loaded, or saved: nothing in it refers to the compiler.

    `image` is one position-independent blob; bytes from `readonly` on (all of it is code if None) are data. `plan` and
    `main` are the offsets of its two entries (see `native/rt/weft_abi.h`). `constants` are the packed weights: one
    block, one buffer, parts by 64-byte aligned offset, or a function that computes them. `asserts` are the messages of the
    checks in the code, by number, with `{0}` to `{3}` for the values that a failed check reports. `target` describes in words the
    machine that the code was made for; it runs where the processor is a `machine` (such as `x86_64`) that has all of `features`
    (Linux's names; the runtime has `weft.strings`). `arena` is the bytes of a call's workspace, None where that depends on its
    shapes. `denormals` are kept or flushed to zero in calls. `notes` say how the model was made, by key. `source` is the code as
    text where a backend writes it as such; there is no image then until that text is compiled. With a `replay`, the host
    program is in that instead of the image. The last inputs and outputs are the `states`, which calls get from the runtime.
    """

    image: bytes | memoryview | _rt.Image
    plan: int
    main: int
    constants: Constants
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    asserts: Mapping[int, str] = field(default_factory=dict)
    readonly: int | None = None
    target: str = ""
    machine: str = ""
    features: tuple[str, ...] = ()
    arena: int | None = None
    denormals: Denormals = "keep"
    notes: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    replay: Replay | None = None
    states: tuple[StateSpec, ...] = ()

    @property
    def code_bytes(self) -> int:
        """The bytes of the code, or of the kernels of a device."""
        replay = self.replay
        if replay is None or replay.device is None:
            return len(self.image)
        return replay.device.nbytes + (0 if replay.processor is None else len(replay.processor.image))

    @property
    def kernel_source(self) -> str:
        """The kernels of a device as text, in the language of its compiler; empty for a model for processors."""
        return "" if self.replay is None or self.replay.device is None else self.replay.device.source

    @property
    def called_inputs(self) -> tuple[TensorSpec, ...]:
        """The inputs that a caller gives: all but the states."""
        return self.inputs[: len(self.inputs) - len(self.states)]

    @property
    def called_outputs(self) -> tuple[TensorSpec, ...]:
        """The outputs that a caller gets: all but the states."""
        return self.outputs[: len(self.outputs) - len(self.states)]

    @property
    def state_inputs(self) -> tuple[TensorSpec, ...]:
        """The inputs that are states, in the order of `states`."""
        return self.inputs[len(self.called_inputs) :]
