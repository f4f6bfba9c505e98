"""Artifacts: a compiled model as one file.

    8 bytes     `WEFT` and the version of this format
    8 bytes     the size of the whole file
    8 bytes     the size of the header
    8 bytes     where the constants begin, a multiple of 4096
    8 bytes     the checksum of the constants (`_rt.checksum`)
    32 bytes    SHA-256 of all the rest but the constants
    header      JSON: signature, entries, target, and where the image lies
    image       code and read-only data, at a multiple of 4096
    constants   packed weights, up to the end

Numbers are little-endian. Nothing is ever unpickled. The constants are read straight to where kernels read them, memory in huge
pages, so that they are held once; a memory map would hold them once too, but in small pages, and stream up to 40% slower.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.native import _rt
from weft.runtime.host import machine, missing_features
from weft.runtime.package import Package, TensorSpec
from weft.support.dtypes import parse_dtype
from weft.support.errors import ArtifactError

FORMAT: Final = 2
MAGIC: Final = b"WEFT"
NUMBERS: Final = struct.Struct("<4sIQQQQ")
PREFIX_SIZE: Final = NUMBERS.size + hashlib.sha256().digest_size
PAGE: Final = 4096
AGAIN: Final = "save the model again with this version of Weft"
_PLAIN: Final = ("plan", "main", "readonly", "target", "machine")


class Numbers(NamedTuple):
    """What a file begins with."""

    magic: bytes
    version: int
    size: int
    header: int
    constants: int
    checksum: int


def write_artifact(package: Package, path: str | os.PathLike[str]) -> None:
    """Writes a package; the file appears whole, or not at all."""
    constants = memoryview(_rt.pack(package.constants))
    header = _header(package)
    image_at, image_size = header["image"]
    text = json.dumps(header).encode()
    constants_at = _page(image_at + image_size)
    numbers = NUMBERS.pack(
        *Numbers(MAGIC, FORMAT, constants_at + len(constants), len(text), constants_at, _rt.checksum(constants))
    )
    head = [text, bytes(image_at - PREFIX_SIZE - len(text)), package.image, bytes(constants_at - image_at - image_size)]
    _replace_file(Path(path), [numbers, _digest(numbers, *head), *head, constants])


def _digest(*parts: bytes | memoryview) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def _replace_file(path: Path, parts: list[bytes | memoryview]) -> None:
    """Writes a file beside *path*, and moves it there once it is whole."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
        try:
            file.writelines(parts)
            file.flush()
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except OSError:
            with suppress(OSError):
                os.unlink(file.name)
            raise


def _header(package: Package) -> dict[str, Any]:
    """Describes the package; the image comes after the longest that the header can get."""
    header: dict[str, Any] = {name: getattr(package, name) for name in _PLAIN}
    header["abi"] = _rt.ABI
    header["features"] = list(package.features)
    header["asserts"] = sorted(package.asserts.items())
    for side in ("inputs", "outputs"):
        header[side] = [[s.name, s.dtype.name, list(s.shape)] for s in getattr(package, side)]
    room = len(json.dumps(header)) + 256  # for the place of the image
    header["image"] = [_page(PREFIX_SIZE + room), len(package.image)]
    return header


def _page(offset: int) -> int:
    return -(-offset // PAGE) * PAGE


def read_artifact(path: str | os.PathLike[str]) -> Package:
    """Returns the package in a file, with its constants as one block.

    Raises `ArtifactError` if the file is no artifact, is damaged, or was made for another machine or version.
    """
    where = os.fspath(path)
    try:
        with open(where, "rb", buffering=0) as file:
            numbers = _checked_numbers(file, where)
            head = _checked_head(file, numbers, where)
            header = _checked_header(head[: numbers.header], where)
            constants = _checked_constants(file, numbers, where)
    except FileNotFoundError:
        raise ArtifactError("there is no such file", where=where) from None
    except OSError as error:
        raise ArtifactError(f"the file cannot be read: {error}", where=where) from None
    at, size = header["image"]
    return Package(
        image=head[at - PREFIX_SIZE : at - PREFIX_SIZE + size],
        constants=constants,
        inputs=tuple(_specs(header["inputs"])),
        outputs=tuple(_specs(header["outputs"])),
        features=tuple(header["features"]),
        asserts={int(number): str(text) for number, text in header["asserts"]},
        **{name: header[name] for name in _PLAIN},
    )


def is_artifact(path: str | os.PathLike[str]) -> bool:
    """Tells whether the file at *path* is a saved model, by its first bytes."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _checked_numbers(file: FileIO, where: str) -> Numbers:
    """Reads what the file begins with; raises `ArtifactError` unless it is an artifact of this version, and whole."""
    start = file.read(NUMBERS.size)
    if start[: len(MAGIC)] != MAGIC or len(start) < NUMBERS.size:
        raise ArtifactError("the file is not a model saved by Weft", where=where, hint="compile the model and save it")
    numbers = Numbers(*NUMBERS.unpack(start))
    size = os.fstat(file.fileno()).st_size
    if numbers.version != FORMAT:
        raise ArtifactError(
            f"the file has format {numbers.version}, and this Weft reads {FORMAT}", where=where, hint=AGAIN
        )
    if numbers.size != size:
        raise ArtifactError(
            f"the file is truncated: it has {size} of {numbers.size} bytes", where=where, hint="copy it again"
        )
    if not PREFIX_SIZE <= numbers.constants <= size:
        raise _altered(where)
    return numbers


def _checked_head(file: FileIO, numbers: Numbers, where: str) -> memoryview:
    """Reads the header and the image, once they have proved to be unchanged."""
    digest = file.read(PREFIX_SIZE - NUMBERS.size)
    head = bytearray(numbers.constants - PREFIX_SIZE)
    _fill(file, memoryview(head), where)
    if _digest(NUMBERS.pack(*numbers), memoryview(head)) != digest:
        raise _altered(where)
    return memoryview(head)


def _checked_constants(file: FileIO, numbers: Numbers, where: str) -> _rt.Block:
    block = _rt.Block(numbers.size - numbers.constants)
    _fill(file, memoryview(block), where)
    if _rt.checksum(block) != numbers.checksum:
        raise _altered(where)
    return block


def _fill(file: FileIO, room: memoryview, where: str) -> None:
    """Reads until *room* is full; the system may give less at a time than was asked for."""
    done = 0
    while done < len(room):
        count = file.readinto(room[done:])
        if not count:
            raise ArtifactError("the file became shorter while it was read", where=where, hint="copy it again")
        done += count


def _altered(where: str) -> ArtifactError:
    return ArtifactError("the file was altered: its checksum is wrong", where=where, hint="copy it again")


def _checked_header(text: memoryview, where: str) -> dict[str, Any]:
    """Returns the header of an unchanged file; raises `ArtifactError` unless this machine and runtime can run its code."""
    header: dict[str, Any] = json.loads(bytes(text))
    if header["abi"] != _rt.ABI:
        raise ArtifactError(f"its code has ABI {header['abi']}, not {_rt.ABI}", where=where, hint=AGAIN)
    _check_target(header, where)
    return header


def _check_target(header: dict[str, Any], where: str) -> None:
    """Raises `ArtifactError` unless this machine can run the code."""
    hint = f"compile the model for this machine (it was compiled for {header['target'] or header['machine']})"
    if header["machine"] and header["machine"] != machine():
        raise ArtifactError(f"the model is for {header['machine']}, and this is {machine()}", where=where, hint=hint)
    missing = missing_features(tuple(header["features"]))
    if missing:
        raise ArtifactError(f"this processor lacks {', '.join(missing)}", where=where, hint=hint)


def _specs(rows: list[tuple[str, str, list[int | str]]]) -> Iterator[TensorSpec]:
    for name, dtype, shape in rows:
        yield TensorSpec(name, parse_dtype(dtype), tuple(shape))
