"""Layers that only move elements: on strings they do so with the ids."""

from __future__ import annotations

from typing import Any, Final

from weft.frontends.keras.call import Call
from weft.frontends.keras.registry import TABLE
from weft.frontends.string_ids import Strings

_MOVING: Final = frozenset(
    {
        *("Concatenate", "Flatten", "Identity", "Permute", "RepeatVector", "Reshape"),
        *(f"ops.{name}" for name in ("Concatenate", "ExpandDims", "Flip", "GetItem", "Repeat", "Reshape", "Split")),
        *(f"ops.{name}" for name in ("Squeeze", "Stack", "Take", "Tile", "Transpose")),
    }
)


def translated(c: Call) -> Any:
    """Returns the results of a layer, which are strings where it moves strings."""
    if c.layer.kind not in _MOVING or not _has_strings(c.positional):
        return TABLE[c.layer.kind](c)
    c.positional = _as_ids(c.positional)
    made = TABLE[c.layer.kind](c)
    return tuple(map(Strings, made)) if isinstance(made, tuple) else Strings(made)


def _has_strings(value: Any) -> bool:
    return any(map(_has_strings, value)) if isinstance(value, list | tuple) else isinstance(value, Strings)


def _as_ids(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_ids(v) for v in value]
    return value.ids if isinstance(value, Strings) else value
