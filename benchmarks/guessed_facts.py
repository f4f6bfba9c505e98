"""This machine as if nothing were known of its processor but its features and caches: no row of a table, nothing measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from weft.targets import MEASURED, cores, cpu, cpuinfo, host, unmeasured_core, use_measured


@contextmanager
def guessed_facts() -> Iterator[None]:
    """Let targets of this machine have the facts that a processor has before it is measured (`targets.unmeasured_core`)."""
    before = dict(MEASURED)
    with mock.patch.object(cores, "listed_core", return_value=None):
        use_measured(unmeasured_core(cpuinfo()))  # so that it is not measured
        _forget_targets()
        try:
            yield
        finally:
            MEASURED.clear()
            MEASURED.update(before)
    _forget_targets()


def _forget_targets() -> None:
    cpu.cache_clear()
    host.cache_clear()
