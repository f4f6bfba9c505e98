"""MLIR's bytecode as text, by the bindings of MLIR that the package jaxlib has, in a process of its own."""

from __future__ import annotations

from contextlib import closing
from importlib.util import find_spec
from typing import Final

from weft.support.errors import ModelError, ToolchainError
from weft.support.worker_process import WorkerDied, WorkerHung, WorkerProcess, told

MODULE: Final = "weft.frontends.jax.bytecode_worker"
"""The module that the process runs: it imports jaxlib, this module does not."""

SECONDS: Final = 60.0
"""How long reading may take, beside one second for each of `RATE` bytes."""
RATE: Final = 1 << 20

_TEXT: Final = b"t"
_SHOWN: Final = 200


def text_of_bytecode(data: bytes, name: str) -> str:
    """Returns the text of a module in bytecode, *name*d in messages.

    Raises `ToolchainError` where jaxlib is not installed, and `ModelError` for bytecode that it can't read, or does not survive.
    """
    with closing(BytecodeReader()) as reader:
        return reader.text(data, name)


class BytecodeReader:
    """A process that reads modules one after another, another one after a module that ended it."""

    def __init__(self) -> None:
        self._process: WorkerProcess | None = None

    def text(self, data: bytes, name: str) -> str:
        """Returns the text of a module; see `text_of_bytecode`."""
        process = self._process = self._process or _started(name)
        try:
            answer = process.call(data, SECONDS + len(data) // RATE)
        except WorkerHung as error:
            self.close()
            raise _damaged(name, f"{error} to read") from None
        except WorkerDied as death:
            self.close()
            raise _damaged(name, f"the process that read it ended: {told(death.args[0])}") from None
        said = answer[1:].decode(errors="replace")
        if not answer.startswith(_TEXT):
            raise _damaged(name, said[:_SHOWN])
        return said

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.close(0)
        self._process = None


def _started(name: str) -> WorkerProcess:
    if find_spec("jaxlib") is None:
        raise ToolchainError(
            f"reading {name}, which is bytecode, needs jaxlib, which is not installed",
            hint="install Weft with its extra 'jax', or save the text: exported.mlir_module()",
        )
    process = WorkerProcess(MODULE)
    try:
        process.await_start()
    except (WorkerDied, WorkerHung) as error:
        process.close(0)
        raise ToolchainError(
            f"the process that reads {name}, which is bytecode, does not start: {str(error.args[-1])[-_SHOWN:]}",
            hint="see whether `python -c 'import jaxlib.mlir.ir'` works",
        ) from None
    return process


def _damaged(name: str, why: str) -> ModelError:
    return ModelError(f"{name} is damaged bytecode of StableHLO: {why}", hint="export the function again")
