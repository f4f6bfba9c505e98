"""The image of a saved model for a device, in the place of code: sections with its host program and its kernels.

    b"WFDV", u32 sections; a row for each: 4 letters of its kind, u32 zero, u64 where it begins, u64 bytes; the sections

    HOST  the host program, as `native/launch` replays it        NAME  the names of the kernels, each ended by a zero
    KIND  the kind of device, by the language of its kernels     CODE  machine code, a section for each that there is
    TEXT  the kernels' source                                    USES  u32: in which CODE each kernel is
    PROC  the image of the kernels that the processor runs       ENTR  u64: where its constants begin, and where each kernel does

The last two are there where there are such kernels (the feature `weft.processor`): they are the callees behind the device's.
Numbers are little-endian. The sections follow one another to the end of the image; nothing in them is executed here but PROC.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final

import numpy as np

from weft.native import _rt
from weft.runtime.package import DeviceCode, ProcessorCode, Replay
from weft.support.errors import ArtifactError

MAGIC: Final = b"WFDV"
_HEAD: Final = struct.Struct("<4sI")
_ROW: Final = struct.Struct("<4sIQQ")
_ONCE: Final = (b"HOST", b"KIND", b"TEXT", b"NAME", b"USES")
_CODE: Final = b"CODE"
_PROCESSOR: Final = (b"PROC", b"ENTR")


def write_device_image(replay: Replay) -> bytes:
    """Returns the image of a host program that launches kernels of a device."""
    device = replay.device
    assert device is not None
    distinct = list(dict.fromkeys(device.binaries))
    uses = np.array([distinct.index(b) for b in device.binaries], "<u4")
    names = "".join([f"{name}\0" for name in device.kernels])
    sections = [
        (b"HOST", replay.program),
        (b"KIND", device.api.encode()),
        (b"TEXT", device.source.encode()),
        (b"NAME", names.encode()),
        (b"USES", uses.tobytes()),
        *[(_CODE, code) for code in distinct],
        *_processor_sections(replay.processor),
    ]
    begins = accumulate([len(data) for _, data in sections], initial=_HEAD.size + _ROW.size * len(sections))
    rows = [_ROW.pack(kind, 0, at, len(data)) for (kind, data), at in zip(sections, begins, strict=False)]
    return b"".join([_HEAD.pack(MAGIC, len(sections)), *rows, *[data for _, data in sections]])


def _processor_sections(code: ProcessorCode | None) -> list[tuple[bytes, bytes]]:
    if code is None:
        return []
    image = bytes(memoryview(code.image))
    readonly = len(image) if code.readonly is None else code.readonly
    places = np.array([readonly, *code.offsets], "<u8")
    return list(zip(_PROCESSOR, (image, places.tobytes()), strict=True))


def _processor_of(found: Mapping[bytes, bytes]) -> ProcessorCode | None:
    """Returns the kernels of the processor, if there are any; raises `ValueError` for those that are not in their image."""
    if not set(_PROCESSOR) <= set(found):
        return None
    image, places = (found[kind] for kind in _PROCESSOR)
    readonly, *offsets = np.frombuffer(places, "<u8").tolist()
    if not offsets or readonly > len(image) or max(offsets) >= readonly:
        raise ValueError
    return ProcessorCode(_rt.Image(image, readonly), readonly, tuple(offsets))


def read_device_image(image: memoryview, where: str) -> Replay:
    """Returns the host program in an image; raises `ArtifactError` for one that `write_device_image` did not write."""
    try:
        parts = list(_sections(image))
        found = {kind: data for kind, data in parts if kind != _CODE}
        kinds = sorted(set(found) - set(_PROCESSOR)), set(found) & set(_PROCESSOR)
        if (
            kinds[0] != sorted(_ONCE)
            or len(kinds[1]) == 1
            or len(found) + sum(kind == _CODE for kind, _ in parts) != len(parts)
        ):
            raise ValueError
        code = [data for kind, data in parts if kind == _CODE]
        names = found[b"NAME"].decode().split("\0")[:-1]
        binaries = [code[n] for n in np.frombuffer(found[b"USES"], "<u4").tolist()]
        if binaries and len(binaries) != len(names):
            raise ValueError
        processor = _processor_of(found)
        device = DeviceCode(found[b"KIND"].decode(), found[b"TEXT"].decode(), tuple(names), tuple(binaries))
    except (ValueError, IndexError, struct.error):  # of which UnicodeDecodeError is one
        raise ArtifactError(
            "the file was altered: its kernels are not where it says", where=where, hint="compile the model again"
        ) from None
    own = () if processor is None else processor.callees
    return Replay(found[b"HOST"], (*[(None, 0) for _ in names], *own), device, processor)


def _sections(image: memoryview) -> Iterator[tuple[bytes, bytes]]:
    """Yields the kind and the bytes of each section; raises `ValueError` where they do not follow one another to the end."""
    magic, count = _HEAD.unpack_from(image)
    end = _HEAD.size + _ROW.size * count
    if magic != MAGIC or end > len(image):
        raise ValueError
    for n in range(count):
        kind, zero, at, size = _ROW.unpack_from(image, _HEAD.size + _ROW.size * n)
        if zero != 0 or at != end:
            raise ValueError
        end += size
        if end > len(image):
            raise ValueError
        yield kind, bytes(image[at:end])
    if end != len(image):
        raise ValueError
