"""Messages of protobuf of which some fields are others, whatever the messages say: lengths around them stay right."""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import dataclass
from typing import Final, TypeAlias

from tests.frontends.tensorflow.written import varint

Content: TypeAlias = "int | bytes | list[Field]"

BORDERS: Final = (0, 1, 2, 3, 7, 99, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63, 2**64 - 1)
_VARINT, _LONG, _BYTES, _SHORT = 0, 1, 2, 5


@dataclass
class Field:
    """A field: its number, its form, and what it holds; bytes that are a message are held as its fields."""

    number: int
    form: int
    content: Content


def parsed(data: bytes, depth: int = 0) -> list[Field] | None:
    """Returns the fields of a message, or None for bytes that are none."""
    made: list[Field] = []
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        number, form = key >> 3, key & 7
        if not 0 < number < 1 << 12 or form not in (_VARINT, _LONG, _BYTES, _SHORT):
            return None
        content: Content
        if form == _VARINT:
            content, at = _number(data, at)
        else:
            size, at = _number(data, at) if form == _BYTES else (8 if form == _LONG else 4, at)
            content, at = data[at : at + size], at + size
            if form == _BYTES and depth < 20 and 1 < size < 1 << 14:
                content = parsed(content, depth + 1) or content
        if at < 0 or at > len(data):
            return None
        made.append(Field(number, form, content))
    return made


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at
    return 0, -1 << 60


def written(fields: list[Field]) -> bytes:
    """Returns the message of some fields."""
    made = bytearray()
    for f in fields:
        made += varint(f.number << 3 | f.form)
        if isinstance(f.content, int):
            made += varint(f.content)
            continue
        data = written(f.content) if isinstance(f.content, list) else f.content
        made += (varint(len(data)) if f.form == _BYTES else b"") + data
    return bytes(made)


def damaged_message(rng: random.Random, data: bytes) -> bytes:
    """Returns a message with one to three of its fields, at any depth, changed."""
    fields = parsed(data)
    assert fields is not None, "a seed of another format"
    for _ in range(rng.randint(1, 3)):
        _change(rng, fields)
    return written(fields)


def _change(rng: random.Random, fields: list[Field]) -> None:
    within = _lists(fields)
    if not within:
        return
    holder = rng.choice(within)
    at, kind = rng.randrange(len(holder)), rng.randrange(8)
    if kind == 0:
        del holder[at]
    elif kind == 1:
        holder.insert(rng.randrange(len(holder) + 1), deepcopy(holder[at]))
    elif kind == 2:
        holder[at] = deepcopy(rng.choice(rng.choice(within)))
    elif kind == 3:
        holder[at] = Field(rng.randint(1, 40), holder[at].form, holder[at].content)
    else:
        holder[at] = Field(holder[at].number, holder[at].form, _other(rng, holder[at], within))


def _lists(fields: list[Field]) -> list[list[Field]]:
    found, waiting = list[list[Field]](), [fields]
    while waiting:
        here = waiting.pop()
        if here:
            found.append(here)
        waiting += [f.content for f in here if isinstance(f.content, list)]
    return found


def _other(rng: random.Random, field: Field, within: list[list[Field]]) -> Content:
    """Returns other content of the same form: a number at a border, bytes of a field elsewhere, or damaged ones."""
    if field.form == _VARINT:
        return rng.choice(BORDERS)
    alike = [f.content for fields in within for f in fields if f.form == field.form and f.content is not field.content]
    if alike and rng.random() < 0.5:
        return deepcopy(rng.choice(alike))
    data = bytearray(written(field.content) if isinstance(field.content, list) else bytes(field.content or b""))
    if field.form != _BYTES or rng.random() < 0.5:
        for k in range(len(data)):
            data[k] = rng.choice((0, 1, 127, 128, 255, data[k]))
    else:
        del data[rng.randrange(len(data) + 1) :]
    return bytes(data)
