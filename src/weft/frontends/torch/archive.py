"""Reads `.pt2` files of `torch.export.save` without running anything that is in them: no pickles, and no text that is evaluated.

A file is a ZIP archive of a program in JSON, and of weights as plain bytes, which are mapped. PyTorch's own reader unpickles the
example inputs, evaluates the text of sizes and guards, and writes names into code that it runs. Here the JSON is checked against
the values allowed in each place (`program_json`) before that reader gets to see it, and pickles are refused, or not looked at
where they are not needed.
"""

from __future__ import annotations

import json
import math
import mmap
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import torch
from torch._export.serde import schema
from torch._export.serde.serialize import ExportedProgramDeserializer, _dict_to_dataclass
from torch.export import ExportedProgram

from weft.frontends.content import name_of
from weft.frontends.torch.program_json import checked_program
from weft.support.errors import ModelError

AGAIN: Final = "export the model again, by torch.export.save of this version of PyTorch"
_HEADER: Final = 30
"""Bytes of a file's header in a ZIP archive, before its name."""
_DTYPES: Final = {
    1: torch.uint8,
    2: torch.int8,
    3: torch.int16,
    4: torch.int32,
    5: torch.int64,
    6: torch.float16,
    7: torch.float32,
    8: torch.float64,
    12: torch.bool,
    13: torch.bfloat16,
}
"""The types of elements by their numbers in files (`schema.ScalarType`)."""


def read_program(model: str | Path | bytes) -> ExportedProgram:
    """Returns the program in a `.pt2` file, or its bytes; raises `ModelError` for a damaged one, and for other archives."""
    name = name_of(model)
    try:
        return _Archive(model, name).program()
    except ModelError:
        raise
    except Exception as error:  # of whatever kind: PyTorch checks little of its input
        message = f"{name} is damaged: {type(error).__name__}: {str(error)[:200]}"
        raise ModelError(message, hint=AGAIN) from error


class _Archive:
    """The files of one archive, by their paths behind the name of the archive's only folder."""

    def __init__(self, model: str | Path | bytes, name: str) -> None:
        self.name = name
        if isinstance(model, bytes):
            self.memory: Any = bytearray(model)
            archive = zipfile.ZipFile(BytesIO(model))
        else:
            with Path(model).open("rb") as file:
                self.memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            archive = zipfile.ZipFile(model)
        with archive:
            self.files = {f.filename.partition("/")[2]: f for f in archive.infolist()}
        if self.files.get("archive_format") is None or bytes(self.bytes_of("archive_format")) != b"pt2":
            if "data.pkl" in self.files or "constants.pkl" in self.files:
                raise ModelError(
                    f"{name} holds pickled objects of PyTorch's (a state_dict, a module or TorchScript), which can run any code",
                    hint="load it yourself, and export the module: torch.export.save(torch.export.export(module, (x,)), 'm.pt2')",
                )
            raise ModelError(f"{name} is a ZIP archive, but no exported program of PyTorch's", hint=AGAIN)

    def program(self) -> ExportedProgram:
        """Returns the program, which must be the only one."""
        names = [f.removeprefix("models/").removesuffix(".json") for f in self.files if f.startswith("models/")]
        if len(names) != 1:
            raise ModelError(f"{self.name} holds {len(names)} programs, not one", hint="save one program in each file")
        text = checked_program(self._json(f"models/{names[0]}.json"), self.name)
        weights = self._tensors("weights", names[0])
        constants = self._tensors("constants", names[0])
        read = _dict_to_dataclass(schema.ExportedProgram, text)
        made: ExportedProgram = ExportedProgramDeserializer().deserialize(read, weights, constants, None)
        return made

    def bytes_of(self, path: str) -> memoryview:
        """Returns the bytes of a file in the archive, where they lie."""
        found = self.files[path]
        if found.compress_type != zipfile.ZIP_STORED:
            raise ModelError(f"{self.name} holds {path} compressed", hint=AGAIN)
        head = self.memory[found.header_offset : found.header_offset + _HEADER]
        start = (
            found.header_offset
            + _HEADER
            + int.from_bytes(head[26:28], "little")
            + int.from_bytes(head[28:30], "little")
        )
        if start + found.file_size > len(self.memory):
            raise ModelError(f"{self.name} is cut off: {path} is not all there", hint="download or export it again")
        return memoryview(self.memory)[start : start + found.file_size]

    def _json(self, path: str) -> Any:
        if path not in self.files:
            raise ModelError(f"{self.name} has no {path}", hint=AGAIN)
        return json.loads(bytes(self.bytes_of(path)))

    def _tensors(self, kind: str, model: str) -> dict[str, torch.Tensor]:
        """Returns the weights, or the constants, of a model by their names."""
        about = self._json(f"data/{kind}/{model}_{kind}_config.json")["config"]
        return {name: self._tensor(kind, name, meta) for name, meta in about.items()}

    def _tensor(self, kind: str, name: str, meta: Mapping[str, Any]) -> torch.Tensor:
        described = meta["tensor_meta"]
        if meta["use_pickle"] or described is None:
            raise ModelError(
                f"{self.name} holds {name!r} pickled, which can run any code",
                hint="save tensors alone, contiguous and of plain types",
            )
        dtype = _DTYPES.get(described["dtype"])
        if dtype is None:
            raise ModelError(
                f"{self.name} has elements of type {described['dtype']} in {name!r}", hint="convert them first"
            )
        sizes, strides = ([int(v["as_int"]) for v in described[key]] for key in ("sizes", "strides"))
        raw = self.bytes_of(f"data/{kind}/{meta['path_name']}")
        flat = torch.frombuffer(raw, dtype=dtype) if len(raw) else torch.empty(0, dtype=dtype)
        if math.prod(sizes) > flat.numel():  # repeated by strides of 0, of which a file may claim any number
            raise ModelError(
                f"{self.name} has {math.prod(sizes)} elements in {name!r}, of which {flat.numel()} are in the file",
                hint="call contiguous() on it before the module is exported",
            )
        made = torch.as_strided(flat, sizes, strides, int(described["storage_offset"]["as_int"]))
        return torch.nn.Parameter(made, requires_grad=False) if meta["is_param"] else made
