"""Names that are no text: a name of a damaged file may hold any bytes, which Python's protobuf hands over as they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor  # type: ignore[import-untyped]
from google.protobuf.message import Message  # type: ignore[import-untyped]

from weft.support.errors import ModelError

_COMMENTS: Final = frozenset({"doc_string"})
"""Fields that nothing depends on: exporters of old wrote them in any encoding."""


@dataclass(frozen=True)
class _Fields:
    """The fields of a kind of message that hold text, and those that hold messages; single ones and lists apart."""

    texts: tuple[str, ...]
    lists_of_texts: tuple[str, ...]
    messages: tuple[str, ...]
    lists_of_messages: tuple[str, ...]


def check_names(message: Message, where: str) -> None:
    """Raises `ModelError` for a text in *message*, or in one below it, that is not UTF-8; *where* names the file.

    Comments aside: `readable` makes text of those.
    """
    pending: list[tuple[Any, str]] = [(message, "")]
    while pending:
        at, path = pending.pop()
        fields = _fields(at.DESCRIPTOR)
        for name in fields.texts:
            if isinstance(text := getattr(at, name), bytes):
                raise _no_text(text, f"{path}{name}", where)
        for name in fields.lists_of_texts:
            for k, text in enumerate(getattr(at, name)):
                if isinstance(text, bytes):
                    raise _no_text(text, f"{path}{name}[{k}]", where)
        for name in fields.messages:
            if at.HasField(name):
                pending.append((getattr(at, name), f"{path}{name}."))
        for name in fields.lists_of_messages:
            pending += [(inner, f"{path}{name}[{k}].") for k, inner in enumerate(getattr(at, name))]


def readable(text: str | bytes) -> str:
    """Returns a comment as text, with a sign in place of undecodable bytes."""
    return text.decode(errors="replace") if isinstance(text, bytes) else text


def _no_text(found: bytes, path: str, where: str) -> ModelError:
    return ModelError(
        f"{path} is not text in UTF-8: {found[:40]!r}",
        where=where,
        hint="the file is damaged: export or download it again",
    )


@cache
def _fields(kind: Descriptor) -> _Fields:
    texts = [f for f in kind.fields if f.type == FieldDescriptor.TYPE_STRING and f.name not in _COMMENTS]
    messages = [f for f in kind.fields if f.type == FieldDescriptor.TYPE_MESSAGE]
    return _Fields(
        tuple([f.name for f in texts if not _is_list(f)]),
        tuple([f.name for f in texts if _is_list(f)]),
        tuple([f.name for f in messages if not _is_list(f)]),
        tuple([f.name for f in messages if _is_list(f)]),
    )


def _is_list(field: FieldDescriptor) -> bool:
    return isinstance(field.default_value, list)
