"""What a device does for a host program: memory, copies, launches. Each kind of device implements these few methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol


class Argument(NamedTuple):
    """An argument of a launch: a place in a block of the device's memory, `at` bytes into it, or, without a block, a number."""

    block: int | None
    at: int


class Device(Protocol):
    """A device with the kernels of one model on it. Blocks are handles of its own; all methods raise `DeviceError`.

    What is asked for is done in that order; `read` waits until it is done. Calls come from several threads.
    """

    @property
    def name(self) -> str:
        """The name by which its driver knows it."""

    def alloc(self, nbytes: int) -> int:
        """Returns a block of memory of at least so many bytes, which hold anything."""

    def free(self, block: int) -> None:
        """Takes a block back, which what was asked for before may still use."""

    def write(self, block: int, at: int, source: int, nbytes: int) -> None:
        """Copies from the host's memory, at the address *source*."""

    def read(self, block: int, at: int, to: int, nbytes: int) -> None:
        """Copies to the host's memory, at the address *to*."""

    def move(self, to: Argument, source: Argument, nbytes: int) -> None:
        """Copies from one place in the device's memory to another."""

    def launch(self, kernel: int, grid: Sequence[int], arguments: Sequence[Argument]) -> None:
        """Starts the kernel of this number: *grid* is the blocks along x, y, z, then the threads of each."""

    def seconds(self, work: Callable[[], object]) -> float:
        """Returns the seconds that the device takes for what *work* asks for: by its own clock where it has one."""

    def close(self) -> None:
        """Gives back all that there is on the device; nothing else is called afterwards."""
