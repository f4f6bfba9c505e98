"""Messages between processes: each is a pickle after its length, in a pipe."""

from __future__ import annotations

import struct
from typing import IO, Final

_LENGTH: Final = struct.Struct("<Q")


def write_frame(to: IO[bytes], payload: bytes) -> None:
    """Writes one message; raises `OSError` where nobody reads any more."""
    to.write(_LENGTH.pack(len(payload)))
    to.write(payload)
    to.flush()


def read_frame(source: IO[bytes]) -> bytes | None:
    """Reads one message; None where the pipe ends, in the middle of a message too."""
    head = source.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (count,) = _LENGTH.unpack(head)
    payload = source.read(count)
    return payload if len(payload) == count else None
