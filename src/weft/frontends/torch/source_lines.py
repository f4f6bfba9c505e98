"""The line of a user's program that a node was traced from."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from torch.fx import Node

_FRAME: Final = re.compile(r'File "([^"\n]+)", line (\d+), in ')
_FAR: Final = 4
"""How many nodes without a line may follow one another."""
_OF_PYTORCH: Final = re.compile(r"[\\/]site-packages[\\/]torch[\\/]")


def source_line(node: Node) -> str | None:
    """Returns the innermost line outside of PyTorch that *node* was traced from, as `model.py:12`; None where it is not known.

    PyTorch's passes put nodes between others without saying where from: those have the line of their consumer.
    """
    for _ in range(_FAR):
        found = _own_line(node)
        if found is not None or not node.users:
            return found
        node = next(iter(node.users))
    return None


def _own_line(node: Node) -> str | None:
    trace = node.meta.get("stack_trace")
    return _innermost(_FRAME.findall(trace)) if isinstance(trace, str) else None


def line_of_error(error: Exception, caller: str) -> str | None:
    """Returns the innermost line outside of PyTorch, and behind the file *caller*, that *error* was raised at.

    Where PyTorch only reads the user's program, and doesn't run it, its message quotes the line.
    """
    frames = [(f.filename, str(f.lineno)) for f in traceback.extract_tb(error.__traceback__) if f.filename != caller]
    return _innermost(frames) or _innermost(_FRAME.findall(str(error)))


def _innermost(frames: Sequence[tuple[str, str]]) -> str | None:
    own = [(file, line) for file, line in frames if not _OF_PYTORCH.search(file) and not file.startswith("<")]
    if not own:
        return None
    file, line = own[-1]
    return f"{PurePath(file).name}:{line}"


def with_line(text: str, node: Node) -> str:
    """Returns *text* with the line of the user's program that *node* is from, if it is known."""
    line = source_line(node)
    return text if line is None else f"{text} ({line})"
