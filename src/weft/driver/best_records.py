"""The best tuning records of a machine, as far as a compilation asks for them; needs no compiler."""

from __future__ import annotations

from types import TracebackType

from weft.driver.hardware import hardware_of
from weft.records import Record, Store
from weft.support.digest import digest
from weft.targets import Target


class BestRecords:
    """The best verified records for *target* of the database at *path*; without a path there are none.

    It remembers what was asked for: `asked` are the workloads, `digest` is that of the plans found for them. Raises
    `RecordsError` where the database can't be read.
    """

    def __init__(self, path: str | None, target: Target) -> None:
        self._store = None if path is None else Store(path, read_only=True)
        self._hardware = "" if path is None else hardware_of(target).digest
        self._found: dict[str, Record | None] = {}

    def __enter__(self) -> BestRecords:
        """Opens nothing more."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the database; what was found stays known."""
        if self._store is not None:
            self._store.close()

    def __bool__(self) -> bool:
        """Tells whether there is a database."""
        return self._store is not None

    @property
    def asked(self) -> list[str]:
        """The digests of the workloads that were asked for."""
        return sorted(self._found)

    def find(self, workload: str) -> Record | None:
        """Returns the best verified record of a workload on this machine."""
        if self._store is None:
            return None
        if workload not in self._found:
            self._found[workload] = self._store.best(workload, self._hardware)
        return self._found[workload]

    def digest(self) -> str:
        """Returns a digest of the workloads asked for, and of their plans: what a compiled model depends on."""
        return digest(*[(w, None if (r := self._found[w]) is None else r.plan) for w in self.asked])
