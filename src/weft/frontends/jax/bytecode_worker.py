"""The process that reads bytecode: `python -m weft.frontends.jax.bytecode_worker PARENT`, started by `BytecodeReader`.

MLIR's bindings end the process, or take all memory, for some files that are damaged.
"""

from __future__ import annotations

import sys
from typing import Final

from jaxlib.mlir.dialects.stablehlo import deserialize_portable_artifact, register_dialect
from jaxlib.mlir.ir import Context

from weft.support.worker_side import end_with, limit_memory, serve, take_pipes

MEMORY: Final = 2 << 30
"""Bytes that reading may take, beside `TIMES` as many as the file has."""
TIMES: Final = 64

TEXT: Final = b"t"
REFUSED: Final = b"r"
"""The first byte of an answer: the module's text follows, or why there is none."""


def main(parent: int) -> None:
    """Reads modules until the standard input ends."""
    end_with(parent)
    serve(*take_pipes(), answer)


def answer(data: bytes) -> bytes:
    """Returns the text of a module in bytecode, or why it can't be read."""
    limit_memory(MEMORY + TIMES * len(data))
    try:
        with Context() as context:
            register_dialect(context)
            portable = deserialize_portable_artifact(context, data)
            return TEXT + str(portable.operation.get_asm(enable_debug_info=True)).encode()
    except Exception as error:  # the bindings raise errors of types of their own
        return REFUSED + str(error).strip().partition("\n")[0].encode(errors="replace")


if __name__ == "__main__":
    main(int(sys.argv[1]))
