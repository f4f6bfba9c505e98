"""One process for all bytecode, where to start one for each input would take most of the time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from weft.frontends.jax import frontend
from weft.frontends.jax.bytecode import BytecodeReader


@contextmanager
def kept_reader() -> Iterator[None]:
    """Has the process that reads bytecode go on to the next input, unless it ended."""
    with closing(BytecodeReader()) as reader, pytest.MonkeyPatch.context() as patch:
        patch.setattr(frontend, "text_of_bytecode", reader.text)
        yield
