"""Artifacts: a compiled model as one file, written here and read by `native/rt`; docs/design/0031-artifacts.md has the format.

Code, packed weights, the signature of a call, and notes of how it was made. The weights are mapped: loading copies none of
them, and processes that load the same file share them. Nothing is ever unpickled.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

from weft.native import _rt
from weft.runtime.device_image import read_device_image, write_device_image
from weft.runtime.lazy_constants import LazyConstants, in_memory, write_mapped
from weft.runtime.package import InitialValue, Package, StateSpec, TensorSpec
from weft.support.dim import Dim, parse_dim
from weft.support.dtypes import SCALARS
from weft.support.errors import ArtifactError, DeviceError, InputError
from weft.support.files import write_output

Buffer: TypeAlias = bytes | bytearray | memoryview
Saved: TypeAlias = str | os.PathLike[str] | Buffer
"""A saved model: its path, or its bytes."""

MAGIC: Final = b"WEFT"
MOST_SUMMED: Final = 1 << 28
"""Bytes of a file up to which the checksum of its constants is computed when it is loaded, in some tens of milliseconds."""
PAGE: Final = 4096
_SUMMED: Final = struct.Struct("<9Qq8I")
"""The fields of the header's first part that its checksum covers: from the image's checksum on."""
_FLUSH: Final = 1
"""The flag of a model that takes denormals for zero."""
_BYTES: Final = "the bytes given"
_OPEN: Final = -1
"""The size of a dimension that is known in a call only."""
_RANGE: Final = "range/"
"""The prefix of the keys of notes that tell the range of a dimension."""
_START: Final = struct.Struct("<4sIQQ")
_STATES: Final = "states"
"""The note that tells the states."""
_INITIAL: Final = "initial"
"""The note that tells the values that states begin with."""
_NEEDS_STATES: Final = "weft.state"
_NEEDS_INITIAL: Final = "weft.initial"
_NEEDS_DEVICE: Final = "weft.device"
_NEEDS_PROCESSOR: Final = "weft.processor"
_OWN_FEATURES: Final = (_NEEDS_STATES, _NEEDS_INITIAL, _NEEDS_DEVICE, _NEEDS_PROCESSOR)
"""The features that tell the contents of a file, which its package has as such."""
_TYPES: Final = list(SCALARS.values())
_HINTS: Final = {
    _rt.UNREADABLE: "check the path",
    _rt.NOT_A_MODEL: "compile the model and save it",
    _rt.DAMAGED: "copy it again",
}


def write_artifact(package: Package, path: str | os.PathLike[str]) -> None:
    """Writes a package; the file appears whole, or not at all. Raises `ArtifactError` where it can't be written."""
    write_output(Path(path), partial(fill_artifact, package))


def fill_artifact(package: Package, file: IO[bytes]) -> None:
    """Writes a package to a new file, lazy constants by computing them there. Raises as `check_saved`, `OSError` without room."""
    constants = package.constants
    if not isinstance(constants, LazyConstants):
        file.writelines(artifact_parts(package))
        return
    image = _saved_image(package)
    begin = len(artifact_header(package, image, constants.nbytes, 0)) + _page(len(image))
    summed = write_mapped(constants, file, begin)
    file.writelines([artifact_header(package, image, constants.nbytes, summed), image])


def check_saved(package: Package) -> None:
    """Raises `ArtifactError` for a model whose host program is replayed over code of the processor."""
    if package.replay is not None and package.replay.device is None:
        raise ArtifactError("a model whose host program is replayed can't be saved", hint="save its compiled form")


def artifact_parts(package: Package) -> list[bytes | memoryview]:
    """Returns the bytes of an artifact: header, image, padding to its last page, and constants.

    That of a model for a device has a host program and kernels in the place of code. Raises `ArtifactError` for a package that
    `check_saved` refuses.
    """
    image, constants = _saved_image(package), memoryview(in_memory(package.constants))
    header = artifact_header(package, image, len(constants), _rt.checksum(constants))
    return [header, image, bytes(-len(image) % PAGE), constants]


def _saved_image(package: Package) -> memoryview:
    """Returns the image as it is saved: code, or a device's program; raises as `check_saved`."""
    check_saved(package)
    return memoryview(package.image if package.replay is None else write_device_image(package.replay))


def artifact_header(package: Package, image: memoryview, nbytes: int, checksum: int) -> bytes:
    """Returns the beginning of the file, up to the image: numbers, tables and texts.

    Of the constants it has their bytes and their checksum, of which its own length does not depend.
    """
    texts = _Texts(_START.size + _SUMMED.size)
    body = texts.tables(package)
    header = _page(_START.size + _SUMMED.size + len(body) + 1)
    constants_at = header + _page(len(image))
    tensors = (*package.inputs, *package.outputs)
    readonly = len(image) if package.readonly is None else package.readonly
    summed = _SUMMED.pack(
        _rt.checksum(image), checksum, header, len(image), readonly, package.plan, package.main,
        constants_at, nbytes, -1 if package.arena is None else package.arena, _rt.ABI,
        len(package.inputs), len(package.outputs), sum(len(s.shape) for s in tensors), len(package.asserts),
        len(_features(package)), len(_notes(package)), _FLUSH if package.denormals == "flush" else 0,
    )  # fmt: skip
    summed = (summed + body).ljust(header - _START.size, b"\0")
    return _START.pack(MAGIC, _rt.FORMAT, constants_at + nbytes, _rt.checksum(summed)) + summed


def _page(size: int) -> int:
    return -(-size // PAGE) * PAGE


def _notes(package: Package) -> Mapping[str, str]:
    """Returns the notes of a package, with that of its states: '0' and the axis, or '.', and '=' (in place) or '2' for each."""
    states = [
        f"{'.' if s.axis is None else chr(ord('0') + s.axis)}{'=' if s.in_place else '2'}" for s in package.states
    ]
    told = {_STATES: "".join(states)} if states else {}
    if any(s.initial for s in package.states):
        told[_INITIAL] = "".join([_initial_digits(s.initial) for s in package.states])
    ranges = {f"{_RANGE}{name}": str(sizes) for s in package.inputs for name, sizes in s.ranges.items()}
    return {"target": package.target, "machine": package.machine, **ranges, **told, **package.notes}


def _initial_digits(initial: InitialValue | None) -> str:
    """Returns two numbers of 16 hexadecimal digits: one more than where in the constants the value is, or 0, and its rows."""
    return f"{0:032x}" if initial is None else f"{initial.offset + 1:016x}{initial.rows:016x}"


def _features(package: Package) -> tuple[str, ...]:
    """Returns the features that a package needs of the processor, and of Weft: without states, say, it refuses them by name."""
    own = {
        _NEEDS_STATES: bool(package.states),
        _NEEDS_INITIAL: any(s.initial for s in package.states),
        _NEEDS_DEVICE: package.replay is not None,
        _NEEDS_PROCESSOR: package.replay is not None and package.replay.processor is not None,
    }
    return (*package.features, *[name for name, is_needed in own.items() if is_needed])


def _states_of(note: str, initial: str) -> tuple[StateSpec, ...]:
    """Returns the states that two notes tell, which the loader has checked."""
    rows = zip(note[::2], note[1::2], strict=True)
    return tuple(
        [
            StateSpec(None if axis == "." else ord(axis) - ord("0"), in_place == "=", _initial_of(initial[32 * k :]))
            for k, (axis, in_place) in enumerate(rows)
        ]
    )


def _initial_of(digits: str) -> InitialValue | None:
    offset = int(digits[:16] or "0", 16) - 1
    return None if offset < 0 else InitialValue(offset, int(digits[16:32], 16))


@dataclass
class _Texts:
    """The texts of a header, each there once; they come after tables that refer to them."""

    begin: int
    places: dict[str, int] = field(default_factory=dict)
    blob: bytearray = field(default_factory=bytearray)

    def tables(self, package: Package) -> bytes:
        """Returns the tables of a package, then the texts."""
        tensors = (*package.inputs, *package.outputs)
        size = 12 * len(tensors) + 12 * sum(len(s.shape) for s in tensors)
        self.begin += size + 8 * (len(package.asserts) + len(_notes(package))) + 4 * len(_features(package))
        rows = [struct.pack("<III", self.place(s.name), s.dtype.code, len(s.shape)) for s in tensors]
        for late, size_or_name in [(s.late, d) for s in tensors for d in s.shape]:
            is_open = isinstance(size_or_name, str)
            name = self.place(str(size_or_name) if is_open else "")
            open_size = _rt.LATE if late else _OPEN
            rows.append(struct.pack("<qI", open_size if is_open else size_or_name, name))
        rows += [struct.pack("<II", number, self.place(text)) for number, text in sorted(package.asserts.items())]
        rows += [struct.pack("<I", self.place(f)) for f in _features(package)]
        rows += [struct.pack("<II", self.place(key), self.place(text)) for key, text in _notes(package).items()]
        return b"".join(rows) + bytes(self.blob)

    def place(self, text: str) -> int:
        """Returns where in the file *text* lies; a zero, which ends texts there, becomes U+FFFD."""
        if text not in self.places:
            self.places[text] = self.begin + len(self.blob)
            self.blob += text.replace("\0", "\ufffd").encode("utf-8", "replace") + b"\0"
        return self.places[text]


def read_artifact(
    source: Saved, *, threads: int | None = None, copy: bool = False, verify: bool | None = None
) -> Package:
    """Returns the package in a file, or in its bytes; its code is mapped already, and so are a file's constants unless *copy*.

    Without *verify*, the checksum of the constants is not computed, which *threads* share; None leaves it out for a file of more
    than `MOST_SUMMED` bytes: to sum a map is to read all of it. Raises `ArtifactError` if the file
    is no artifact, is damaged, or was made for another machine or version; `DeviceError` if there is no memory for it;
    `InputError` for a *source* that is neither a path nor bytes.
    """
    place, where = _place(source)
    copy = copy or isinstance(source, bytearray | memoryview)  # others may write to these
    try:
        found = _rt.Artifact(place, threads or 0, copy, _is_summed(place) if verify is None else verify)
    except _rt.LoadError as refused:
        raise _explained(refused, where) from None
    except MemoryError:
        raise DeviceError(
            "there is no memory left to load the model", where=where, hint="stop other processes"
        ) from None
    notes = dict(found.notes)
    ranges = {key.removeprefix(_RANGE): parse_dim(notes.pop(key)) for key in found.notes if key.startswith(_RANGE)}
    states = _states_of(notes.pop(_STATES, ""), notes.pop(_INITIAL, ""))
    is_on_device = _NEEDS_DEVICE in found.features
    return Package(
        image=b"" if is_on_device else found.image,
        replay=read_device_image(memoryview(found.image), where) if is_on_device else None,
        plan=found.plan,
        main=found.main,
        constants=found.constants,
        inputs=tuple([_with_ranges(s, ranges) for s in _specs(found.inputs)]),
        outputs=_specs(found.outputs),
        asserts=found.checks,
        readonly=None if is_on_device else found.readonly,
        target=notes.pop("target", ""),
        machine=notes.pop("machine", ""),
        features=tuple([f for f in found.features if f not in _OWN_FEATURES]),
        arena=None if found.arena_bytes < 0 else found.arena_bytes,
        denormals="flush" if found.flush else "keep",
        notes=notes,
        states=states,
    )


def _is_summed(place: str | Buffer) -> bool:
    """Tells whether constants are summed where nobody says so: those in memory are, and those of a file that is not large."""
    if not isinstance(place, str):
        return True
    try:
        return os.stat(place).st_size <= MOST_SUMMED
    except (OSError, ValueError):
        return True  # the loader reports the error


def _place(source: object) -> tuple[str | Buffer, str]:
    """Returns the loader's argument for a path or bytes, and its name in messages."""
    if isinstance(source, bytes | bytearray | memoryview):
        return source if memoryview(source).contiguous else bytes(source), _BYTES
    if isinstance(source, str | os.PathLike):
        path = os.fsdecode(source)
        if "\0" in path:
            raise ArtifactError(f"{path!r} is no name of a file", hint="check the path")
        return path, path
    hint = (
        "give its bytes: source.getvalue() or source.read()"
        if hasattr(source, "read")
        else "give its path or its bytes"
    )
    raise InputError(f"an object of type {type(source).__name__} is no saved model", hint=hint)


def _explained(refused: _rt.LoadError, where: str) -> ArtifactError:
    status, text = refused.args
    hint = _HINTS.get(status)
    if status == _rt.OTHER_VERSION:
        hint = f"make it again with this version: weft compile MODEL -o {where if where != _BYTES else 'FILE.weft'}"
    if status == _rt.OTHER_MACHINE:
        hint = "compile the model for this machine, or with a target that it has (weft compile --target)"
    return ArtifactError(text, where=where, hint=hint)


def is_saved(source: object) -> bool:
    """Tells whether *source* is the path or the bytes of a saved model, by its first bytes."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source[: len(MAGIC)]) == MAGIC
    return isinstance(source, str | os.PathLike) and is_artifact(source)


def is_artifact(path: str | os.PathLike[str]) -> bool:
    """Tells whether the file at *path* is a saved model, by its first bytes."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _with_ranges(spec: TensorSpec, ranges: Mapping[str, Dim]) -> TensorSpec:
    return replace(spec, ranges={str(s): ranges[str(s)] for s in spec.shape if s in ranges})


def _specs(rows: Iterable[tuple[str, int, tuple[Any, ...], bool]]) -> tuple[TensorSpec, ...]:
    return tuple([TensorSpec(name, _TYPES[code], shape, late) for name, code, shape, late in rows])
