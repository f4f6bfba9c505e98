"""Runs generated code inside the test process: an image mapped executable, and a single-threaded context in Python."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.codegen import Image
from weft.codegen.llvm.object_code import compile_function_module
from weft.codegen.objects import link
from weft.loop import Buffer, Program
from weft.support.dtypes import DType
from weft.targets import Target

_TASK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_PARALLEL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Context(ctypes.Structure):
    """The context that generated code is given."""

    _fields_ = [
        ("parallel_for", _PARALLEL),
        ("arena", ctypes.c_void_p),
        ("arena_bytes", ctypes.c_int64),
        ("constants", ctypes.c_void_p),
        ("alloc", _ALLOC),
        ("free", _FREE),
        ("threads", ctypes.c_int32),
        ("failed_assert", ctypes.c_int32),
        ("detail", ctypes.c_int64 * 4),
        ("arena_needed", ctypes.c_int64),
        ("outside", ctypes.c_int32),
    ]


class Failed(Exception):
    """Generated code returned a status other than zero."""

    def __init__(self, status: int, message: str | None, details: list[int]) -> None:
        super().__init__(status, message, details)
        self.status, self.message, self.details = status, message, details


class Machine:
    """An image mapped into memory, with its context; `pieces` says how many ranges a parallel loop is cut into."""

    def __init__(self, image: Image, pieces: int = 2) -> None:
        self.image = image
        self.pieces = pieces
        self.live: list[tuple[int, Any]] = []  # scratch memory in use, last in first out
        self.allocated = 0
        self.limit = 1 << 40
        self.launches: list[int] = []
        self._map = mmap.mmap(-1, max(len(image.code), 1), prot=mmap.PROT_READ | mmap.PROT_WRITE)
        self._map.write(image.code)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mprotect(ctypes.c_void_p(self.base), ctypes.c_size_t(len(image.code)), mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "mprotect")
        self.ctx = Context(
            parallel_for=_PARALLEL(self._parallel_for), alloc=_ALLOC(self._alloc), free=_FREE(self._free), threads=1
        )

    def _parallel_for(self, ctx: int, task: int, args: int, n: int) -> int:
        self.launches.append(n)
        function = _TASK(task)
        bounds = [n * i // self.pieces for i in range(self.pieces + 1)]
        statuses = [function(ctx, args, a, b) for a, b in itertools.pairwise(bounds) if a < b]
        return next((s for s in statuses if s), 0)

    def _alloc(self, ctx: int, size: int) -> int:
        if size > self.limit:
            return 0
        raw = ctypes.create_string_buffer(size + 64)
        address = -(-ctypes.addressof(raw) // 64) * 64
        self.live.append((address, raw))
        self.allocated += size
        return address

    def _free(self, ctx: int, address: int) -> None:
        last, _ = self.live.pop()
        if last != address:
            raise AssertionError("scratch memory was not given back in order")

    def address(self, symbol: str) -> int:
        return self.base + self.image.symbols[symbol]

    def call(self, symbol: str, *args: Any) -> None:
        """Calls a function with ctypes arguments after the context; raises `Failed` for a status other than zero."""
        function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *[type(a) for a in args])(self.address(symbol))
        status = function(ctypes.addressof(self.ctx), *args)
        if status:
            message = self.image.messages.get(self.ctx.failed_assert)
            raise Failed(status, message, list(self.ctx.detail))

    def seconds(self, symbol: str, *args: Any, repeat: int) -> float:
        """Returns the processor time of one of *repeat* calls."""
        function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *[type(a) for a in args])(self.address(symbol))
        context = ctypes.addressof(self.ctx)
        begin = time.thread_time()
        for _ in range(repeat):
            function(context, *args)
        return (time.thread_time() - begin) / repeat


_SCALARS: dict[tuple[str, int], Any] = {
    ("int", 64): ctypes.c_int64,
    ("int", 32): ctypes.c_int32,
    ("float", 32): ctypes.c_float,
    ("float", 64): ctypes.c_double,
    ("bool", 1): ctypes.c_bool,
}


def argument(value: Any, dtype: DType | None) -> Any:
    """Returns *value* as ctypes passes it: an array as its address."""
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    assert dtype is not None
    return _SCALARS[dtype.kind, dtype.bits](value)


def load(program: Program, target: Target, pieces: int = 2) -> tuple[Machine, Callable[..., None]]:
    """Compiles *program* and returns its machine and its entry as a function of NumPy arrays and numbers."""
    machine = Machine(link([compile_function_module(program, target)]), pieces)
    params = program.entry.params

    def entry(*values: Any) -> None:
        given = [argument(v, None if isinstance(p, Buffer) else p.dtype) for v, p in zip(values, params, strict=True)]
        machine.call(program.entry.name, *given)

    return machine, entry
