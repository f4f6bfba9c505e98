"""A checkpoint of variables: an index by name, a sorted table, and shards of bytes (TensorFlow's tensor bundle)."""

from __future__ import annotations

from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final

from weft.frontends.protobuf_message import Message
from weft.frontends.tensorflow.file.sorted_table import table_entries
from weft.frontends.tensorflow.file.tensor_proto import array_of, shape_of, type_named
from weft.frontends.wire_format import Malformed
from weft.graph import Array
from weft.support.errors import MissingFile, ModelError

PREFIX: Final = "variables/variables"
_MOST_SHARDS: Final = 1 << 16


def mapped(path: Path) -> memoryview:
    """Returns the content of a file without reading it; raises `MissingFile` where there is none."""
    if not path.is_file():
        raise MissingFile(f"there is no {path}, which the saved model needs", hint="copy the whole folder")
    if not path.stat().st_size:
        return memoryview(b"")
    with path.open("rb") as file:
        return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))


class Checkpoint:
    """The variables of a saved model's folder by their names in the checkpoint; arrays are views into the files."""

    def __init__(self, folder: Path) -> None:
        self.prefix = folder / PREFIX
        self.shards: dict[int, memoryview] = {}
        self.entries: dict[str, memoryview] = {}
        index = self.prefix.with_name(f"{self.prefix.name}.index")
        if not index.exists():
            self.count = 0
            return
        try:
            for key, value in table_entries(mapped(index)):
                self.entries[key.decode("utf-8", "replace")] = value
            header = Message(self.entries.pop("", memoryview(b"")))
            self.count = header.integer(1, 1)
            if header.integer(2) or not 0 < self.count < _MOST_SHARDS:  # big-endian, or no number of shards
                raise Malformed
        except Malformed as error:
            raise ModelError(f"{index} is damaged, or compressed", hint="copy or save the model again") from error

    def array(self, name: str) -> Array | None:
        """Returns a variable; None where there is none of that name, or of a type that Weft lacks.

        Raises `ModelError` for one whose entry is damaged, or that is stored in slices.
        """
        if name not in self.entries:
            return None
        try:
            entry = Message(self.entries[name])
            dtype, shape = type_named(entry.integer(1)), shape_of(entry.inner(2))
            if isinstance(dtype, str):
                return None
            shard, offset, size = self._shard(entry.integer(3)), entry.integer(4), entry.integer(5)
            if (
                shape is None
                or min(shape, default=0) < 0
                or entry.has(7)
                or offset < 0
                or size < 0
                or offset + size > len(shard)
            ):
                raise Malformed
            return array_of(shard[offset : offset + size], dtype, shape)
        except Malformed as error:
            raise ModelError(
                f"the variable {name} is stored in slices, cut short or damaged", hint="copy or save the model again"
            ) from error

    def _shard(self, number: int) -> memoryview:
        if not 0 <= number < self.count:
            raise Malformed
        if number not in self.shards:
            name = f"{self.prefix.name}.data-{number:05d}-of-{self.count:05d}"
            self.shards[number] = mapped(self.prefix.with_name(name))
        return self.shards[number]
