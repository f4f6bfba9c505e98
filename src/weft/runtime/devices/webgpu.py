"""A device with WebGPU: the kernels of one model as compute pipelines, freed memory, and commands that are not submitted yet."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from threading import RLock
from time import perf_counter
from typing import Any, Final, NamedTuple

import numpy as np

from weft.runtime.devices.block_pool import GRAIN, BlockPool
from weft.runtime.devices.device import Argument
from weft.runtime.devices.webgpu_library import adapter_name, calling, find_adapters, open_adapter
from weft.support.errors import DeviceError, ToolchainError
from weft.support.lazy_import import resolve

WORD: Final = 4
"""Copies begin and end at a multiple of so many bytes."""

MOST_BLOCKS: Final = 65535
"""Blocks of a grid along one axis: longer ones are folded along a second axis, which kernels undo."""

MOST_COMMANDS: Final = 64
"""Commands after which they are submitted, so that the device has begun when the last is written."""

MOST_BINDINGS: Final = 4096
"""Launches that are remembered, to be made again without new bindings."""

_KERNEL: Final = re.compile(
    r"^// kernel (\w+): (\d+) buffers(?:, in (\d+(?: \d+)*) parts of (\d+) bytes)?$", re.MULTILINE
)


class KernelText(NamedTuple):
    """The text of a kernel, and the number of its bindings.

    Where not each of its buffers is one, `parts` tells how many each is, one behind the other, of `part_bytes` but for the last.
    """

    text: str
    buffers: int
    parts: tuple[int, ...]
    part_bytes: int


def split_kernels(source: str) -> tuple[str, dict[str, KernelText]]:
    """Returns the head of a source, and its kernels by their names."""
    marks = list(_KERNEL.finditer(source))
    if not marks:
        return source, {}
    ends = [*[m.start() for m in marks[1:]], len(source)]
    parts = {
        m[1]: KernelText(
            source[m.start() : end], int(m[2]), tuple([int(n) for n in (m[3] or "").split()]), int(m[4] or 0)
        )
        for m, end in zip(marks, ends, strict=True)
    }
    return source[: marks[0].start()], parts


class WebGPUDevice:
    """The first GPU, else the first device that there is; see `Device`.

    A kernel takes a buffer as a binding, which begins at the last place that the device allows before the buffer's begin, and
    the bytes from there to it as a word of the binding 0, where numbers are as two words each, and a zero comes last. Commands
    are written into one encoder until something is read; pipelines are made when the device is opened, bindings when a launch is
    first seen.
    """

    def __init__(self, source: str, kernels: Sequence[str]) -> None:
        """Compiles *source*; raises `ToolchainError` where there is no device, or its compiler refuses the source."""
        self._device = open_adapter()
        self._limits = self._device.limits
        self._lock = RLock()
        self._numbers = count(1)
        self._buffers: dict[int, Any] = {}
        self._blocks = BlockPool(self._buffer, self._release)
        self._encoder: Any = None
        self._pass: Any = None
        self._commands = 0
        self._waited_for: int | None = None
        self._bound: dict[tuple[int, tuple[Argument, ...]], Any] = {}
        head, parts = split_kernels(source)
        self._texts = [parts[name] for name in kernels]
        self._kernels = [self._pipeline(name, head, parts[name]) for name in kernels]

    @property
    def name(self) -> str:
        """The name by which its driver knows it."""
        return adapter_name(find_adapters()[0])

    def _pipeline(self, name: str, head: str, kernel: KernelText) -> tuple[Any, Any]:
        """Returns the pipeline of a kernel, and the layout of its bindings."""
        most = self._limits["max-storage-buffers-per-shader-stage"]
        if kernel.buffers > most:
            raise ToolchainError(
                f"the kernel {name} takes {kernel.buffers} buffers, and {self.name} binds no more than {most}",
                hint="compile this model for a cpu target",
            )
        kinds = ["uniform", *["storage"] * kernel.buffers]
        entries = [
            {"binding": n, "visibility": resolve("wgpu:ShaderStage").COMPUTE, "buffer": {"type": kind}}
            for n, kind in enumerate(kinds)
        ]
        try:
            layout = self._device.create_bind_group_layout(entries=entries)
            module = self._device.create_shader_module(code=head + kernel.text)
            made = self._device.create_compute_pipeline(
                layout=self._device.create_pipeline_layout(bind_group_layouts=[layout]),
                compute={"module": module, "entry_point": name},
            )
        except resolve("wgpu:GPUError") as error:
            raise ToolchainError(
                f"the compiler of {self.name} refused the kernel {name}: {error}",
                hint="this is a bug in Weft, or in the driver",
            ) from error
        return made, layout

    def alloc(self, nbytes: int) -> int:
        """Returns a block of memory of at least so many bytes."""
        with self._lock:
            return self._blocks.take(nbytes)

    def _buffer(self, size: int) -> int:
        most = self._limits["max-buffer-size"]
        if size > most:
            raise DeviceError(
                f"{size} bytes are more than the {most} that a buffer of {self.name} may have",
                hint="give it less at a time, or compile this model for a cpu target",
            )
        usage = resolve("wgpu:BufferUsage")
        usage = usage.STORAGE | usage.COPY_SRC | usage.COPY_DST
        with calling(f"the allocation of {size} bytes"):
            made = self._device.create_buffer(size=size, usage=usage)
        block = next(self._numbers)
        self._buffers[block] = made
        return block

    def _release(self, block: int) -> None:
        self._submit()
        self._bound.clear()
        self._buffers.pop(block).destroy()

    def free(self, block: int) -> None:
        """Keeps a block for the next time."""
        with self._lock:
            self._blocks.give(block)

    def write(self, block: int, at: int, source: int, nbytes: int) -> None:
        """Copies from the host's memory; words of which a part is written are read first."""
        with self._lock, calling("a copy to the device"):
            begin, end = at // WORD * WORD, -(-(at + nbytes) // WORD) * WORD
            given: Any = (ctypes.c_char * nbytes).from_address(source)
            if (begin, end) != (at, at + nbytes):
                words = bytearray(self._words(block, begin, end))
                words[at - begin : at - begin + nbytes] = bytes(given)
                given = words
            self._submit()
            self._device.queue.write_buffer(self._buffers[block], begin, given)

    def read(self, block: int, at: int, to: int, nbytes: int) -> None:
        """Copies to the host's memory."""
        with self._lock, calling("a copy from the device"):
            begin, end = at // WORD * WORD, -(-(at + nbytes) // WORD) * WORD
            words = self._words(block, begin, end)
            ctypes.memmove(to, bytes(words[at - begin : at - begin + nbytes]), nbytes)

    def _words(self, block: int, begin: int, end: int) -> Any:
        self._submit()
        return self._device.queue.read_buffer(self._buffers[block], begin, end - begin)

    def move(self, to: Argument, source: Argument, nbytes: int) -> None:
        """Copies inside of the device's memory; by way of the host where words are not copied as a whole."""
        assert to.block is not None
        assert source.block is not None
        with self._lock:
            if to.at % WORD or source.at % WORD or nbytes % WORD:
                data = ctypes.create_string_buffer(nbytes)
                self.read(source.block, source.at, ctypes.addressof(data), nbytes)
                self.write(to.block, to.at, ctypes.addressof(data), nbytes)
            elif to.block == source.block:  # which no command copies
                between = self._blocks.take(nbytes)
                self._copy(Argument(between, 0), source, nbytes)
                self._copy(to, Argument(between, 0), nbytes)
                self._blocks.give(between)
            else:
                self._copy(to, source, nbytes)

    def _copy(self, to: Argument, source: Argument, nbytes: int) -> None:
        with calling("a copy on the device"):
            encoder = self._commanding()
            if self._pass is not None:
                self._pass.end()
                self._pass = None
            source_buffer, buffer = self._buffers[source.block or 0], self._buffers[to.block or 0]
            encoder.copy_buffer_to_buffer(source_buffer, source.at, buffer, to.at, nbytes)

    def launch(self, kernel: int, grid: Sequence[int], arguments: Sequence[Argument]) -> None:
        """Starts a kernel, which takes its number of a block from two axes."""
        blocks = grid[0] * grid[1] * grid[2]
        shape = (blocks, 1) if blocks <= MOST_BLOCKS else (MOST_BLOCKS, -(-blocks // MOST_BLOCKS))
        if shape[1] > MOST_BLOCKS:
            raise DeviceError(
                f"a grid of {blocks} blocks is more than a device with WebGPU launches", hint="give it less at a time"
            )
        with self._lock, calling("a launch"):
            group = self._bindings(kernel, tuple(arguments))
            encoder = self._commanding()
            if self._pass is None:
                self._pass = encoder.begin_compute_pass()
            self._pass.set_pipeline(self._kernels[kernel][0])
            self._pass.set_bind_group(0, group)
            self._pass.dispatch_workgroups(*shape, 1)

    def _bindings(self, kernel: int, arguments: tuple[Argument, ...]) -> Any:
        """Returns the bindings of a launch, those that it had the last time if there was one."""
        found = self._bound.get((kernel, arguments))
        if found is None:
            if len(self._bound) >= MOST_BINDINGS:
                self._bound.clear()
            found = self._bound[kernel, arguments] = self._new_bindings(kernel, arguments)
        return found

    def _new_bindings(self, kernel: int, arguments: tuple[Argument, ...]) -> Any:
        grain, parts = self._limits["min-storage-buffer-offset-alignment"], iter(self._texts[kernel].parts)
        words: list[int] = []
        resources: list[dict[str, Any]] = []
        for a in arguments:
            if a.block is None:
                words += [a.at & 0xFFFFFFFF, a.at >> 32 & 0xFFFFFFFF]
                continue
            begin = a.at // grain * grain
            words.append(a.at - begin)
            resources += self._windows(a.block, begin, next(parts, 1), self._texts[kernel].part_bytes)
        data = np.zeros((len(words) // 4 + 1) * 4, np.uint32)
        data[: len(words)] = words
        given = self._device.create_buffer_with_data(data=data, usage=resolve("wgpu:BufferUsage").UNIFORM)
        resources.insert(0, {"buffer": given, "offset": 0, "size": data.nbytes})
        entries = [{"binding": n, "resource": r} for n, r in enumerate(resources)]
        return self._device.create_bind_group(layout=self._kernels[kernel][1], entries=entries)

    def _windows(self, block: int, begin: int, parts: int, part_bytes: int) -> Iterator[dict[str, Any]]:
        """Yields the parts of a block from a byte on that one buffer of a kernel is; a part behind its end is its last bytes."""
        most = part_bytes if parts > 1 else self._limits["max-storage-buffer-binding-size"] // WORD * WORD
        whole = self._blocks.size(block)
        for n in range(parts):
            at = begin + n * part_bytes
            at = at if at < whole else whole - GRAIN
            yield {"buffer": self._buffers[block], "offset": at, "size": min(whole - at, most)}

    def _commanding(self) -> Any:
        """Returns the encoder that the next command goes to."""
        if self._commands >= MOST_COMMANDS:
            self._submit()
        if self._encoder is None:
            self._encoder = self._device.create_command_encoder()
        self._commands += 1
        return self._encoder

    def _submit(self) -> None:
        """Hands the commands so far to the device."""
        if self._encoder is None:
            return
        if self._pass is not None:
            self._pass.end()
        encoder, self._encoder, self._pass, self._commands = self._encoder, None, None, 0
        self._device.queue.submit([encoder.finish()])

    def seconds(self, work: Callable[[], object]) -> float:
        """Returns the seconds on the host's clock until the device has done the operations of *work*."""
        self._finish()
        begin = perf_counter()
        work()
        self._finish()
        return perf_counter() - begin

    def _finish(self) -> None:
        """Waits until the device has done all that it was asked for."""
        with self._lock, calling("a wait for the device"):
            if self._waited_for is None:
                self._waited_for = self._blocks.take(WORD)
            self._words(self._waited_for, 0, WORD)  # commands are done in order

    def close(self) -> None:
        """Releases the memory that the model had on the device, which others go on to use."""
        with self._lock:
            self._blocks.clear()
            self._kernels.clear()
