"""The cache key of a compiled model: the model's files, the options, the target, and the compiler itself.

Files are identified by path and file status, not by their content, so that a cached model is found without reading them.
A model may keep weights in other files; a small entry of the cache remembers which.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from weft.codegen import backend_facts
from weft.driver.cache.code_cache import Cache
from weft.driver.cache.source_hash import source_hash
from weft.driver.options import CompileOptions
from weft.driver.recorded.best_records import BestRecords
from weft.support.digest import digest
from weft.support.dim import Dim
from weft.support.registry import added_names
from weft.targets import Target

Shapes: TypeAlias = Mapping[str, int | Dim | Sequence[int | str | Dim]]


def compiler_facts(target: Target) -> tuple[str, ...]:
    """Returns the facts that machine code depends on beside its program: the target, Weft's source, and the backend's tools."""
    return target.fingerprint(), source_hash(), backend_facts(target)


def find_key(model: object, target: Target, options: CompileOptions, shapes: Shapes | None, cache: Cache) -> str | None:
    """Returns the key under which *cache* has *model*, if it has; None for a model that it can't know."""
    if not isinstance(model, str | os.PathLike):
        return make_key(model, (), target, options, shapes)
    facts = file_facts(Path(model))
    files = cache.get("files", digest(facts)) if facts is not None else None
    return None if files is None else make_key(model, [Path(f) for f in json.loads(files)], target, options, shapes)


def claim_key(model: object, target: Target, options: CompileOptions, shapes: Shapes | None) -> str | None:
    """Returns the key of the lock that lets one process compile a model; None for a model that can't be cached.

    Unlike `find_key` it is there before a model was ever read: of its files, it is made of the first alone.
    """
    files = [Path(model)] if isinstance(model, str | os.PathLike) else []
    return make_key(model, files, target, options, shapes)


def remember_files(files: Sequence[Path], cache: Cache) -> None:
    """Lets `find_key` know the *files* of a model, by the first of them."""
    if files:
        cache.put("files", digest(file_facts(files[0])), json.dumps([str(f.resolve()) for f in files]).encode())


def make_key(
    model: object, files: Sequence[Path], target: Target, options: CompileOptions, shapes: Shapes | None
) -> str | None:
    """Returns the key of a model that is bytes, or consists of *files*; None for any other, or if a file is missing.

    None, too, while operators of Weft's own are replaced by others. Those that are added to Weft's count by their names, since
    they may take the place of functions in the model; one that has them is not kept at all.
    """
    added = added_names()
    facts = [hashlib.sha256(model).hexdigest()] if isinstance(model, bytes) else [file_facts(f) for f in files]
    if not facts or None in facts or added is None:
        return None
    given = sorted((name, str(s)) for name, s in (shapes or {}).items())
    return digest(facts, given, options, added, *compiler_facts(target))


def recorded_key(key: str, target: Target, options: CompileOptions, cache: Cache) -> str | None:
    """Returns the key of a model that follows the tuning records of *options*, and of the pack, of its *key* without them.

    It depends on the plans that are recorded for the workloads of the model alone, which *cache* remembers; None if it does not.
    """
    with BestRecords(options, target) as recorded:
        if not recorded:
            return key
        known = cache.get("workloads", key)
        if known is None:
            return None
        for workload in json.loads(known):
            recorded.find(workload)
    return digest(key, recorded.digest())


def remember_workloads(key: str, recorded: BestRecords, cache: Cache) -> str:
    """Lets `recorded_key` know the workloads of a model, and returns the key of the model."""
    cache.put("workloads", key, json.dumps(recorded.asked).encode())
    return digest(key, recorded.digest())


def changed_since(files: Sequence[Path], moment: int) -> bool:
    """Tells whether one of *files* was changed, or is gone, since *moment* (nanoseconds of the system's clock)."""
    try:
        return any(max(f.stat().st_mtime_ns, f.stat().st_ctime_ns) > moment for f in files)
    except OSError:
        return True


def file_facts(path: Path) -> tuple[object, ...] | None:
    """Returns a file's path, device, inode, size and times of change; None if there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return str(path.resolve()), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
