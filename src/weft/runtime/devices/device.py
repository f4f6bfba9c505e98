"""The operations of a device for a host program: memory, copies, launches. Each kind of device implements these few methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class Argument(NamedTuple):
    """An argument of a launch: a place in a block of the device's memory, `at` bytes into it, or, without a block, a number."""

    block: int | None
    at: int


class Launch(NamedTuple):
    """A launch as `Device.launch` takes it: the number of a kernel, its grid, and its arguments."""

    kernel: int
    grid: tuple[int, ...]
    arguments: tuple[Argument, ...]


class Device(Protocol):
    """A device with the kernels of one model on it. Blocks are handles of its own; all methods raise `DeviceError`.

    Operations are done in the order of the calls; `read` waits until they are done. Calls come from several threads.
    """

    @property
    def name(self) -> str:
        """The name by which its driver knows it."""

    def alloc(self, nbytes: int) -> int:
        """Returns a block of memory of at least so many bytes, which hold anything."""

    def free(self, block: int) -> None:
        """Takes a block back, which earlier operations may still use."""

    def write(self, block: int, at: int, source: int, nbytes: int) -> None:
        """Copies from the host's memory, at the address *source*."""

    def read(self, block: int, at: int, to: int, nbytes: int) -> None:
        """Copies to the host's memory, at the address *to*."""

    def move(self, to: Argument, source: Argument, nbytes: int) -> None:
        """Copies from one place in the device's memory to another."""

    def launch(self, kernel: int, grid: Sequence[int], arguments: Sequence[Argument]) -> None:
        """Starts the kernel of this number: *grid* is the blocks along x, y, z, then the threads of each."""

    def seconds(self, work: Callable[[], object]) -> float:
        """Returns the seconds that the device takes for the operations of *work*, by its own clock where it has one."""

    def close(self) -> None:
        """Gives back all that there is on the device; nothing else is called afterwards."""


class Calls(Protocol):
    """The functions of a device that calls of a model use (`weft_device` in `native/rt/weft_device.h`)."""

    @property
    def address(self) -> int:
        """Where the table of the functions is, as long as this object lives."""

    def note(self, launches: list[Launch] | None) -> None:
        """Has launches that are made from now on added to a list; None: no longer."""

    def take_error(self) -> BaseException | None:
        """Returns the exception behind a call of this thread that failed, once."""

    def counts(self) -> dict[str, int]:
        """Returns how often launches were handed to the driver in this way or that; nothing where that is not told."""


@runtime_checkable
class Shared(Protocol):
    """A device in whose memory other libraries have tensors, too."""

    @property
    def dlpack(self) -> tuple[int, int]:
        """The kind of its memory, and its number, as DLPack tells them."""

    @property
    def stream(self) -> int:
        """The driver's handle of the stream on which tensors of others are asked to be ready."""


@runtime_checkable
class TellsMemory(Protocol):
    """A device that tells how much memory it has."""

    def memory(self) -> int:
        """Returns the bytes that a model can have: those that are free, where its driver tells that, else all."""


@runtime_checkable
class HasCalls(Protocol):
    """A device whose functions are in C: no Python runs between those of a call."""

    def calls(self, constants: int) -> Calls:
        """Returns its functions; *constants* is the block that has the model's constants."""
