"""Settings of a custom operator: a map of numbers in the form of FlexBuffers, whose every offset is checked.

The last byte is the width of the root, which lies before it and before the byte of its type. An offset goes backwards; a map has
the offset of its keys, their width and its size before its values, and the types of these behind them (FlatBuffers' "FlexBuffer
internals", https://flatbuffers.dev/flexbuffers).
"""

from __future__ import annotations

import struct
from typing import Final

from weft.frontends.tflite.flatbuffer import Damaged

_INT, _UINT, _FLOAT, _MAP, _BOOL = 1, 2, 3, 9, 26
_INDIRECT: Final = {6: _INT, 7: _UINT, 8: _FLOAT}
_FORMATS: Final = {
    _INT: {1: "<b", 2: "<h", 4: "<i", 8: "<q"},
    _UINT: {1: "<B", 2: "<H", 4: "<I", 8: "<Q"},
    _FLOAT: {2: "<e", 4: "<f", 8: "<d"},
}
_LONGEST_KEY: Final = 200
_MOST_KEYS: Final = 1000


def settings(data: bytes) -> dict[str, int | float]:
    """Returns the numbers of a map by their keys; raises `Damaged` for anything else."""
    if len(data) < 3:
        raise Damaged
    kind, width = data[-2], data[-1]
    if kind >> 2 != _MAP:
        raise Damaged
    at, width = _followed(data, len(data) - 2 - width, width), 1 << (kind & 3)
    count = _number(data, at - width, width, _UINT)
    key_width = _number(data, at - 2 * width, width, _UINT)
    keys = _followed(data, at - 3 * width, width)
    if count > _MOST_KEYS:
        raise Damaged
    made: dict[str, int | float] = {}
    for k in range(int(count)):
        name = _key(data, _followed(data, keys + k * int(key_width), int(key_width)))
        packed = _number(data, at + int(count) * width + k, 1, _UINT)
        made[name] = _value(data, at + k * width, width, int(packed))
    return made


def _value(data: bytes, at: int, width: int, packed: int) -> int | float:
    kind = packed >> 2
    if kind in _INDIRECT:
        return _number(data, _followed(data, at, width), 1 << (packed & 3), _INDIRECT[kind])
    return _number(data, at, width, _UINT if kind == _BOOL else kind)


def _number(data: bytes, at: int, width: int, kind: int) -> int | float:
    form = _FORMATS.get(kind, {}).get(width)
    if form is None or not 0 <= at <= len(data) - width:
        raise Damaged
    found: int | float = struct.unpack_from(form, data, at)[0]
    return found


def _followed(data: bytes, at: int, width: int) -> int:
    return at - int(_number(data, at, width, _UINT))


def _key(data: bytes, at: int) -> str:
    end = data.find(b"\0", at, at + _LONGEST_KEY) if at >= 0 else -1
    if end < 0:
        raise Damaged
    return data[at:end].decode("utf-8", "replace")
