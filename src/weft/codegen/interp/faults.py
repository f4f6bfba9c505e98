"""Errors of interpreted programs, described in terms of the program."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any, Final

import numpy as np

from weft.codegen.interp.source import Note
from weft.loop import print_stmt
from weft.support.errors import WeftError

NOTES: Final = "h_notes"
"""The global of generated code that holds the note of each of its lines."""
_LINES: Final = 4


class ExecutionError(WeftError):
    """An interpreted program performed an illegal operation: out of bounds, division by zero, call of an unknown function."""


FAULTS: Final = (IndexError, ZeroDivisionError, OverflowError, ValueError, KeyError)
"""The exceptions that generated code raises when the program is at fault."""


def explain(error: Exception) -> ExecutionError:
    """Describes *error*, raised by generated code: the access, the statement, and the values of the variables."""
    frame, line = _innermost(error.__traceback__)
    note: Note = frame.f_globals[NOTES][line - 1]
    found = [eval(i, frame.f_globals, frame.f_locals) for i in note.indices]  # names or literals, of our own making
    message = _message(error, note, found, frame)
    values = [f"{k[2:]} = {v}" for k, v in frame.f_locals.items() if k.startswith("x_") and isinstance(v, int)]
    if note.statement is not None:
        lines = print_stmt(note.statement).splitlines()
        message += "\n  in\n" + "\n".join([f"    {x}" for x in lines[:_LINES]]) + ("\n    ..." * (len(lines) > _LINES))
    return ExecutionError(message + (f"\n  where {', '.join(values)}" if values else ""))


def _innermost(trace: TracebackType | None) -> tuple[FrameType, int]:
    """Returns the last frame of generated code."""
    found: tuple[FrameType, int] | None = None
    while trace is not None:
        if NOTES in trace.tb_frame.f_globals:
            found = trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next
    assert found is not None
    return found


def _message(error: Exception, note: Note, found: Sequence[Any], frame: FrameType) -> str:
    if isinstance(error, ZeroDivisionError):
        return "division by zero"
    if isinstance(error, KeyError):
        return f"there is no function or intrinsic {error.args[0]!r} to call"
    if not isinstance(error, IndexError) or not note.array:
        return f"{note.name}: {error}" if note.name else str(error)
    array = frame.f_locals[note.array]
    for dimension, (i, size) in enumerate(zip(found, array.shape, strict=False)):
        if np.any(np.less(i, 0)) or np.any(np.greater_equal(i, size)):
            shown = i if isinstance(i, int) else np.asarray(i).tolist()
            return f"the index {shown} of dimension {dimension} of {note.name} is outside of 0 .. {size - 1}"
    return str(error)
