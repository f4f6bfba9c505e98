"""Artifacts: a compiled model as one file.

    8 bytes     `WEFT` and the version of this format
    8 bytes     the size of the whole file
    8 bytes     the size of the header
    32 bytes    SHA-256 of all the rest
    header      JSON: signature, entries, target, and where the two sections lie
    image       code and read-only data, at a multiple of 4096
    constants   packed weights, at a multiple of 4096

Numbers are little-endian. Nothing is ever unpickled; the sections are read through a memory map.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from weft.native import _rt
from weft.runtime.host import machine, missing_features
from weft.runtime.package import Package, TensorSpec
from weft.support.dtypes import parse_dtype
from weft.support.errors import ArtifactError

FORMAT: Final = 1
MAGIC: Final = b"WEFT"
NUMBERS: Final = struct.Struct("<4sIQQ")
PREFIX_SIZE: Final = NUMBERS.size + hashlib.sha256().digest_size
PAGE: Final = 4096
_PLAIN: Final = ("plan", "main", "readonly", "target", "machine")


def write_artifact(package: Package, path: str | os.PathLike[str]) -> None:
    """Writes a package; the file appears whole, or not at all."""
    constants = memoryview(_rt.pack(package.constants))
    header = _header(package, len(constants))
    image_at, constants_at = header["image"][0], header["constants"][0]
    text = json.dumps(header).encode()
    numbers = NUMBERS.pack(MAGIC, FORMAT, constants_at + len(constants), len(text))
    body = [text, bytes(image_at - PREFIX_SIZE - len(text)), package.image]
    body += [bytes(constants_at - image_at - len(package.image)), constants]
    _replace_file(Path(path), [numbers, _digest(numbers, *body), *body])


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


def _header(package: Package, constants: int) -> dict[str, Any]:
    """Describes the package; the sections come after the longest that the header can get."""
    header: dict[str, Any] = {name: getattr(package, name) for name in _PLAIN}
    header["abi"] = _rt.ABI
    header["features"] = list(package.features)
    header["asserts"] = sorted(package.asserts.items())
    for side in ("inputs", "outputs"):
        header[side] = [[s.name, s.dtype.name, list(s.shape)] for s in getattr(package, side)]
    room = len(json.dumps(header)) + 256  # for the places of the sections
    image_at = _page(PREFIX_SIZE + room)
    header["image"] = [image_at, len(package.image)]
    header["constants"] = [_page(image_at + len(package.image)), constants]
    return header


def _page(offset: int) -> int:
    return -(-offset // PAGE) * PAGE


def read_artifact(path: str | os.PathLike[str]) -> Package:
    """Returns the package in a file, over a memory map of it.

    Raises `ArtifactError` if the file is no artifact, is damaged, or was made for another machine or version.
    """
    where = os.fspath(path)
    view = _map(where)
    header = _checked_header(view, where)
    _check_target(header, where)
    return Package(
        image=_section(view, header["image"]),
        constants=_section(view, header["constants"]),
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


def _section(view: memoryview, place: tuple[int, int]) -> memoryview:
    offset, size = place
    return view[offset : offset + size]


def _map(where: str) -> memoryview:
    try:
        with open(where, "rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except FileNotFoundError:
        raise ArtifactError("there is no such file", where=where) from None
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise ArtifactError(f"the file cannot be read: {error}", where=where) from None


def _checked_header(view: memoryview, where: str) -> dict[str, Any]:
    """Returns the header, once the file has proved to be whole and unchanged."""
    again = "save the model again with this version of Weft"
    if len(view) < PREFIX_SIZE or bytes(view[:4]) != MAGIC:
        raise ArtifactError("the file is not a model saved by Weft", where=where, hint="compile the model and save it")
    numbers = view[: NUMBERS.size]
    _, version, size, header_size = NUMBERS.unpack(numbers)
    if version != FORMAT:
        raise ArtifactError(f"the file has format {version}, and this Weft reads {FORMAT}", where=where, hint=again)
    if size != len(view):
        raise ArtifactError(
            f"the file is truncated: it has {len(view)} of {size} bytes", where=where, hint="copy it again"
        )
    if _digest(numbers, view[PREFIX_SIZE:]) != bytes(view[NUMBERS.size : PREFIX_SIZE]):
        raise ArtifactError("the file was altered: its checksum is wrong", where=where, hint="copy it again")
    header: dict[str, Any] = json.loads(bytes(view[PREFIX_SIZE : PREFIX_SIZE + header_size]))
    if header["abi"] != _rt.ABI:
        raise ArtifactError(f"its code has ABI {header['abi']}, not {_rt.ABI}", where=where, hint=again)
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
