"""Symbols and weights as MXNet saves them, made without MXNet."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Step: TypeAlias = "tuple[str, dict[str, str], Sequence[str]]"
"""An operator, its attributes, and further variables that are its inputs."""


def chain(*steps: Step) -> str:
    """Returns a symbol of operators one after another, each with variables as further inputs; nodes are called by number."""
    nodes: list[dict[str, Any]] = [{"op": "null", "name": "data", "inputs": []}]
    last = 0
    for op, attributes, names in steps:
        inputs = [[last, 0, 0]]
        for name in names:
            inputs.append([len(nodes), 0, 0])
            nodes.append({"op": "null", "name": name, "inputs": []})
        last = len(nodes)
        nodes.append({"op": op, "name": f"n{last}", "attrs": attributes, "inputs": inputs})
    return json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[last, 0, 0]]})


def params(arrays: Mapping[str, Array], version: int = 2) -> bytes:
    """Returns a file of float32 arrays, with the header of a version: 0, 1, 2, or 3."""
    made = struct.pack("<QQQ", 0x112, 0, len(arrays))
    for a in arrays.values():
        if version == 0:
            made += struct.pack(f"<I{a.ndim}I", a.ndim, *a.shape)
        else:
            made += struct.pack("<I", 0xF993FAC7 + version) + (struct.pack("<i", 0) if version > 1 else b"")
            made += struct.pack(f"<I{a.ndim}q", a.ndim, *a.shape)
        made += struct.pack("<iii", 1, 0, 0) + a.astype("<f4").tobytes()
    names = [n.encode() for n in arrays]
    return made + struct.pack("<Q", len(names)) + b"".join(struct.pack("<Q", len(n)) + n for n in names)


def save(folder: Path, symbol: str, arrays: Mapping[str, Array], version: int = 2) -> Path:
    """Writes a network, and returns the path of its symbol."""
    (folder / "net-symbol.json").write_text(symbol)
    (folder / "net-0000.params").write_bytes(params(arrays, version))
    return folder / "net-symbol.json"
