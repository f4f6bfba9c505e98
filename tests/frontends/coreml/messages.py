"""A writer of protobuf's messages, for models that no converter writes: fields by their numbers."""

from __future__ import annotations

import struct
from typing import TypeAlias

Content: TypeAlias = "int | float | str | bytes"


def number(n: int) -> bytes:
    made = b""
    while n > 127:
        made, n = made + bytes([n & 127 | 128]), n >> 7
    return made + bytes([n])


def message(*fields: tuple[int, Content]) -> bytes:
    """Returns a message of integers, floats, texts and messages."""
    made = b""
    for key, content in fields:
        if isinstance(content, int):
            made += number(key << 3) + number(content)
        elif isinstance(content, float):
            made += number(key << 3 | 5) + struct.pack("<f", content)
        else:
            whole = content.encode() if isinstance(content, str) else content
            made += number(key << 3 | 2) + number(len(whole)) + whole
    return made


def array(name: str, *shape: int) -> bytes:
    """Returns a feature: an array of float32."""
    sizes = b"".join(number(s) for s in shape)
    return message((1, name), (3, message((5, message((1, sizes), (2, 65568))))))


def image(name: str, height: int, width: int) -> bytes:
    """Returns a feature: an RGB image."""
    return message((1, name), (3, message((4, message((1, width), (2, height), (3, 20))))))


def model(kind: int, content: bytes, feature: bytes, result: str = "y") -> bytes:
    """Returns a model of one input and one output."""
    return message((1, 4), (2, message((1, feature), (10, message((1, result))))), (kind, content))


def network(feature: bytes, *layers: bytes, prepared: bytes = b"") -> bytes:
    """Returns a neural network of layers."""
    given = [(2, prepared)] if prepared else []
    return model(500, message(*[(1, v) for v in layers], *given), feature)


def layer(
    kind: int, params: bytes = b"", inputs: tuple[str, ...] = ("x",), output: str = "y", name: str = "l"
) -> bytes:
    return message((1, name), *[(2, i) for i in inputs], (3, output), (kind, params))


def operation(kind: str, result: str, **inputs: str) -> bytes:
    """Returns an operation of a program, whose inputs are values by name."""
    given = [(2, message((1, k), (2, message((1, message((1, v))))))) for k, v in inputs.items()]
    return message((1, kind), *given, (3, message((1, result), (2, tensor(3)))))


def tensor(*shape: int) -> bytes:
    """Returns the type of a tensor of float32."""
    sizes = [(3, message((1, message((1, s))))) for s in shape]
    return message((1, message((1, 11), (2, len(shape)), *sizes)))


def program(*operations: bytes) -> bytes:
    """Returns a program from x [3] to y."""
    block = message((2, "y"), *[(3, o) for o in operations])
    function = message((1, message((1, "x"), (2, tensor(3)))), (2, "CoreML5"), (3, message((1, "CoreML5"), (2, block))))
    return model(502, message((1, 1), (2, message((1, "main"), (2, function)))), array("x", 3))
