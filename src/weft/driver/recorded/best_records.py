"""Looks up the best tuning records of a machine for a compilation; needs no compiler."""

from __future__ import annotations

from types import TracebackType

from weft.driver.hardware import hardware_of
from weft.driver.options import CompileOptions
from weft.records import Pack, Record, Store, pack_folder
from weft.support.digest import digest
from weft.support.knobs import PRETUNED
from weft.targets import Target


class BestRecords:
    """The best verified records for *target*: those of the user's database, else those of the pack that comes with Weft.

    *options* name the database, if there is one, and whether the pack is used (`PRETUNED`); it is not where *pretuned* is false.
    `asked` are the workloads that were asked for, `digest` is that of the plans found for them. Raises `RecordsError` where the
    database can't be read.
    """

    def __init__(self, options: CompileOptions, target: Target, *, pretuned: bool = True) -> None:
        path, folder = options.records, pack_folder() if pretuned and options.uses(PRETUNED) else None
        self._store = None if path is None else Store(path, read_only=True)
        has_any = path is not None or (folder is not None and folder.is_dir())
        self._hardware = hardware_of(target).digest if has_any else ""
        self._pack = Pack(self._hardware, folder)
        self._found: dict[str, Record | None] = {}
        self._of_pack: set[str] = set()

    def __enter__(self) -> BestRecords:
        """Opens nothing more."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the database; records that were found stay known."""
        if self._store is not None:
            self._store.close()

    def __bool__(self) -> bool:
        """Tells whether there are any records to look in."""
        return self._store is not None or bool(self._pack)

    @property
    def asked(self) -> list[str]:
        """The digests of the workloads that were asked for."""
        return sorted(self._found)

    def find(self, workload: str) -> Record | None:
        """Returns the best verified record of a workload on this machine."""
        if workload not in self._found and self:
            found = None if self._store is None else self._store.best(workload, self._hardware)
            if found is None and (found := self._pack.best(workload)) is not None:
                self._of_pack.add(workload)
            self._found[workload] = found
        return self._found.get(workload)

    def is_shipped(self, record: Record) -> bool:
        """Tells whether *record*, which was found, is one of the pack."""
        return record.workload in self._of_pack

    def digest(self) -> str:
        """Returns a digest of the workloads asked for, and of their plans: a compiled model depends on both."""
        return digest(*[(w, None if (r := self._found[w]) is None else r.plan) for w in self.asked])
