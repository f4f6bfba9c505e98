"""A process that ends with models still held, as PyTorch holds what it compiled, says nothing about them."""

from __future__ import annotations

import subprocess
import sys

HELD = """
import ctypes
from weft.native import _rt
held = _rt.Block(64)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))
"""


def test_memory_that_is_held_to_the_end_is_not_reported() -> None:
    done = subprocess.run([sys.executable, "-c", HELD], check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "")
