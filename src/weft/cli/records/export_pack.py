"""`weft records export --pack`: the packs of a database, a file for each machine that it has clear wins for."""

from __future__ import annotations

from pathlib import Path

from weft.records import Store, machines_with_winners, no_winners, pack_lines, winners_of
from weft.support.files import check_folder, write_output


def export_packs(store: Store, folder: Path) -> dict[Path, int]:
    """Writes the packs of *store* into *folder*, which is made if there is none; returns how many records each file has.

    Raises `RecordsError` where no record is faster than its incumbent beyond noise, `ArtifactError` for a folder that can't be
    written in.
    """
    written: dict[Path, int] = {}
    for hardware in machines_with_winners(store):
        check_folder(folder)
        records = winners_of(store, hardware.digest)
        path = folder / f"{hardware.digest}.jsonl"
        text = "".join(pack_lines(store, hardware, records)).encode()
        write_output(path, lambda file, text=text: file.write(text))  # type: ignore[misc]
        written[path] = len(records)
    if not written:
        raise no_winners(store)
    return written
