"""The native runtime: loader, thread pool, arenas, and calls of compiled models and kernels."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias, overload

import numpy as np
from typing_extensions import Buffer as _Buffer

Buffer: TypeAlias = _Buffer | np.ndarray[Any, Any]

ABI: Final[int]
FORMAT: Final[int]
LATE: Final[int]
"""The version of saved files."""
MACHINE: Final[str]
"""This processor's architecture, such as `x86_64`; empty for one that Weft has no name for."""
UNREADABLE: Final[int]
NOT_A_MODEL: Final[int]
OTHER_VERSION: Final[int]
DAMAGED: Final[int]
OTHER_MACHINE: Final[int]
ALIGN: Final[int]
PIECE: Final[int]
"""Bytes that are summed by themselves: in a checksum of several parts, each but the last has a multiple of these."""
FAILED_ASSERT: Final[int]
NO_MEMORY: Final[int]
BUSY: Final[int]
SPOILT: Final[int]
BAD_INPUT: Final[int]
STOPPED: Final[int]
"""The status of a call that its flag stopped."""
DTYPES: Final[dict[str, int]]
"""The code of each scalar type, by name."""

class Failed(Exception):
    """Generated code returned a status; `args` are (status, entry, failed_assert, detail)."""

class LoadError(Exception):
    """A file was refused; `args` are (status, text)."""

class Device(Protocol):
    """A device as the table of functions at `address`."""

    @property
    def address(self) -> int: ...

CUDA_FUNCTIONS: Final[list[str]]
"""The functions of CUDA's driver that are called, by name."""

class CudaCalls:
    """A device with CUDA as calls of a model use it, which has the table of its functions at `address`.

    It is given the addresses of `CUDA_FUNCTIONS`, the handles of a context and of kernels, these with the bytes of shared
    memory that launches give their blocks and whether they wait for the kernels before them, and where the constants are.
    """

    def __init__(
        self, functions: Sequence[int], context: int, kernels: Sequence[tuple[int, int, bool]], constants: int
    ) -> None: ...
    @property
    def address(self) -> int: ...
    @property
    def counts(self) -> tuple[int, int, int]:
        """How often launches were handed to the driver one by one, how often as a graph, and how many graphs there were."""
    def note(self, launches: Any) -> None:
        """Has launches appended to a list, as (kernel, grid, [(whether it is a buffer, value)...]); None ends it."""
    def take_failure(self) -> tuple[str, int, int, int] | None:
        """Returns what failed first in this thread, once: a function and its status; or no name, an axis and its blocks."""
    def close(self) -> None:
        """Gives back all that calls have on the device."""

class Artifact:
    """A saved model, from a file (by its path) or from memory, checked by the runtime's loader; raises `LoadError`.

    The image and the constants keep it alive. Rows of inputs and outputs are (name, dtype code, sizes, whether some
    of them are known only when a call has run).
    """

    def __init__(self, source: str | Buffer, threads: int = 0, copy: bool = False, verify: bool = True) -> None: ...
    @property
    def image(self) -> Image: ...
    @property
    def constants(self) -> Block: ...
    @property
    def plan(self) -> int: ...
    @property
    def main(self) -> int: ...
    @property
    def readonly(self) -> int: ...
    @property
    def arena_bytes(self) -> int:
        """The bytes that a call works in; -1 where that depends on its shapes."""
    @property
    def flush(self) -> bool:
        """Whether denormals are taken for zero in calls of the model."""
    @property
    def inputs(self) -> list[tuple[str, int, tuple[int | str, ...], bool]]: ...
    @property
    def outputs(self) -> list[tuple[str, int, tuple[int | str, ...], bool]]: ...
    @property
    def checks(self) -> dict[int, str]: ...
    @property
    def features(self) -> list[str]: ...
    @property
    def notes(self) -> dict[str, str]: ...

class Block:
    """Memory aligned to 64 bytes; from 2 MiB on, aligned to 2 MiB and in huge pages. Not zeroed."""

    def __init__(self, nbytes: int) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def address(self) -> int: ...

class Image:
    """A mapped image: [0, readonly) executable, the rest readable only, nothing writable; all code unless told."""

    def __init__(self, blob: Buffer, readonly: int | None = None) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...

class Exchange:
    """The functions for tensors that a type has in `__dlpack_c_exchange_api__`; raises TypeError where it has none."""

    def __init__(self, type: type) -> None: ...

class Watch:
    """Compares tensors of a type that has such functions with what they were at the last look."""

    def __init__(self, type: type, samples: int) -> None: ...
    def has_changed(self, tensors: Sequence[Any]) -> bool:
        """Tells whether any is not as the last call found it, or there are others; true in the first.

        It compares their places in memory, the count of writes (`_version`, if there is one), and some *samples* of elements.
        """

class Model:
    """A compiled model; may be run from several threads at once.

    The constants are taken by `pack`. Specs are (dtype code, number of dimensions). `threads` 0 asks for as many as
    there are processors. With `flush`, denormals are taken for zero; without `spin`, threads that wait sleep at once.

    The host program is part of an image, or bytes that are replayed; it then calls kernels at offsets in images, and
    launches those without an image on `devices`, objects with the `address` of a table `weft_device`, which it keeps alive.
    Raises ValueError for bytes that are not well-formed, or of other inputs, outputs or callees.
    """

    @overload
    def __init__(
        self,
        image: Image | Buffer,
        plan_offset: int,
        main_offset: int,
        constants: Block | Buffer | Iterable[tuple[int, Buffer]],
        input_specs: Sequence[tuple[int, int]],
        output_specs: Sequence[tuple[int, int]],
        threads: int = 0,
        flush: bool = False,
        spin: bool = True,
    ) -> None: ...
    @overload
    def __init__(
        self,
        program: bytes,
        callees: Sequence[tuple[Image | None, int]],
        constants: Block | Buffer | Iterable[tuple[int, Buffer]],
        input_specs: Sequence[tuple[int, int]],
        output_specs: Sequence[tuple[int, int]],
        *,
        threads: int = 0,
        flush: bool = False,
        spin: bool = True,
        devices: Sequence[Device] = (),
    ) -> None: ...
    def set_states(self, states: Sequence[tuple[int, bool, int, int]]) -> None:
        """Makes the last inputs and outputs states: the axis along which each grows, or -1, and whether it is in place; where in
        the constants the value is that it begins with, or -1, and the rows of that."""
    def new_state(self, sizes: Sequence[int]) -> State:
        """Returns a state; the sizes are those of all states, one after another, with the capacities of those that grow."""
    def run_with(
        self, inputs: Sequence[Buffer], state: State, outputs: Sequence[Buffer | None] | None, stop: Buffer | None
    ) -> list[np.ndarray[Any, Any]]:
        """Does as `run_into`, with the states of `state`, which it replaces by what the call leaves.

        Raises `Failed` of status `BUSY` where another thread uses the state, `SPOILT` where a call has failed while it wrote it.
        """
    def run(self, inputs: Sequence[Buffer]) -> list[np.ndarray[Any, Any]]:
        """Runs on C-contiguous buffers of the model's dtypes and ranks (bfloat16 as plain bytes, `view("V2")`).

        Raises TypeError, ValueError or BufferError for inputs that are not so, and `Failed`. A signal that comes meanwhile is
        handled before the next parallel loop, within about 0.1 s; if its handler raises, the call ends with that exception.
        """
    def run_in(self, inputs: Sequence[Any], library: Exchange) -> list[Any]:
        """Does the same with tensors of a library, which inputs may be and outputs are. Sizes may not be late."""
    def run_into(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None] | None, stop: Buffer | None
    ) -> list[Any]:
        """Does the same, and writes those outputs that are given, C-contiguous and of the model's dtypes, where they are.

        Outputs may overlap inputs, or one another: what a run reads is what was there before it. Contents are undefined
        after a failure. Once the first byte of `stop` is not 0, the call ends with `Failed` of status `STOPPED`.
        """

    def run_on_device(
        self,
        inputs: Sequence[object],
        outputs: Sequence[object | None] | None,
        stop: Buffer | None,
        state: State | None,
    ) -> list[Any]:
        """Does as `run_into`, or as `run_with`; outputs that are not given are `DeviceArray`s."""
    def new_array(self, shape: Sequence[int], dtype: int) -> DeviceArray:
        """Returns an array of this shape and dtype code, with any values; raises what the device does, or MemoryError."""

class DeviceArray:
    """An array in the memory of the device that runs a model, which it keeps alive. Calls raise what the device does.

    It has DLPack where other libraries have tensors in that memory, and with CUDA `__cuda_array_interface__`. What it holds is
    there when they get it, and they may use it for as long as they keep it.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> str:
        """The name of the device."""
    def is_on(self, device: Device) -> bool:
        """Tells whether it is in the memory of a device, as its table tells of it."""
    def numpy(self) -> np.ndarray[Any, Any]:
        """Returns a copy in the host's memory."""
    def write(self, data: Buffer) -> None:
        """Replaces all values by those of contiguous memory."""
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self, *, stream: object = None, max_version: object = None, dl_device: object = None, copy: object = None
    ) -> object: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

def look(tensor: object) -> tuple[int, tuple[int, ...], bool]:
    """Returns the dtype code (-1 for one that Weft has not), the shape and whether it is dense, of a tensor with DLPack."""

class State:
    """What the calls of a model leave for the next ones: zeros, or no rows, at first. It keeps its model alive.

    All raise `Failed` while another thread uses the state, MemoryError where there is none.
    """

    def reset(self) -> None: ...
    def copy(self) -> State: ...
    def shape(self, number: int) -> tuple[int, ...]:
        """Returns the shape of a state as it is now."""
    def read(self, number: int) -> np.ndarray[Any, Any]:
        """Returns a copy of a state."""
    def write(self, number: int, data: Buffer, rows: int) -> None:
        """Replaces a state; one that grows has so many rows then."""

def pack(constants: Block | Buffer | Iterable[tuple[int, Buffer]]) -> Block:
    """Returns constants as one block: itself, a copy of one buffer, or parts copied to their 64-byte aligned offsets."""

def call(
    image: Image | Buffer,
    offset: int,
    buffers: Sequence[Buffer],
    scalars: Sequence[int] = (),
    *,
    threads: int = 1,
    constants: Buffer | None = None,
    arena_bytes: int = 0,
) -> None:
    """Calls int32_t kernel(weft_ctx *, void *buffer..., int64_t scalar...), 16 arguments at most; raises `Failed`."""

def time_kernel(
    image: Image | Buffer,
    offset: int,
    buffers: Sequence[Buffer],
    scalars: Sequence[int] = (),
    *,
    repeats: int = 10,
    number: int = 1,
    threads: int = 1,
    constants: Buffer | None = None,
    arena_bytes: int = 0,
) -> list[float]:
    """Calls a kernel once, then `repeats` times `number` times; returns each repeat's nanoseconds a call.

    One thread is timed by its processor time, several by the wall clock.
    """

def time_in_turn(
    calls: Sequence[tuple[Image | Buffer, int, Sequence[Buffer]]],
    repeats: int,
    *,
    number: int = 1,
    scalars: Sequence[int] = (),
    threads: int = 1,
    flush: bool = False,
    processor_time: bool = False,
) -> list[list[int]]:
    """Calls kernels (image, offset, buffers) one after another, each `number` times, and all of that `repeats` times.

    All are given `scalars` after their buffers. Raises `Failed`.

    Returns what the clock showed in each repeat, in nanoseconds: before the first kernel, and after each. The clock is that of
    `perf_counter_ns`, or with `processor_time` that of `thread_time_ns`. With `flush`, denormals are taken for zero.
    """

def checksum(data: Buffer, before: int | None = None) -> int:
    """Returns a 64-bit number that shows any change of the data, as fast as memory is read; no defence against forgers.

    That of data in several parts is made part by part, each but the last of whole pieces of `PIECE` bytes: `before` is that of
    the parts before, or at first the number of all bytes.
    """

def from_dlpack(capsule: object) -> np.ndarray[Any, Any]:
    """Returns a DLPack capsule's tensor as a read-only array over the same memory, bfloat16 included."""

def features() -> list[str]:
    """Returns Linux's names for what this processor has and its system lets programs use; none where it can't be asked."""

def known_features() -> list[str]:
    """Returns the names of all features that can be asked for on such a processor."""

def processor() -> tuple[str, int, int]:
    """Returns this processor's maker, such as `GenuineIntel`, family and model; `("", 0, 0)` where it can't be asked."""

def handler_raised() -> bool:
    """Tells whether the last call that this thread made of a model ended with an exception of a signal's handler."""

def running_calls() -> int:
    """Returns how many calls of models run now, in all threads of this process."""

def cpus() -> int:
    """Returns how many processors this process may use: its affinity, bounded by its control group's quota."""

def threads(requested: int) -> int:
    """Returns how many threads are used when so many are asked for (0: as many as there are processors)."""

def set_random_seed(seed: int) -> None:
    """Begins the sequence of seeds anew from which calls that draw random numbers take theirs."""

def random_seed() -> int:
    """Returns the seed with which the sequence goes on from here."""

def fresh_seed() -> int:
    """Returns the next of the seeds."""

def quota_cpus(root: str) -> int:
    """Returns the least quota of this process's control groups and of those above, in whole processors; 0 for none.

    Of the system whose files are below *root*: "" for the one that this runs on.
    """

def use_openmp(parallel: int, thread_number: int) -> None:
    """Parallel loops are done by an OpenMP runtime's threads: the addresses of its `GOMP_parallel` and `omp_get_thread_num`.

    With zeros they are done by Weft's own.
    """
