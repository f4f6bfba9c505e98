"""Descriptions of the cache's entries, for `weft cache`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from weft.driver.cache.code_cache import Entry, read_checked
from weft.driver.options import CompileOptions
from weft.support.errors import ArtifactError
from weft.targets import Target


def describe(
    model: object, files: Sequence[Path], target: Target, options: CompileOptions, shapes: Mapping[str, object] | None
) -> bytes:
    """Returns the content of an `about` entry: which model another entry was compiled from, and how."""
    names = [os.path.abspath(f) for f in files[:1]] or [
        f"{len(model)} bytes" if isinstance(model, bytes) else "a model"
    ]
    asked = [target.name, f"-O{options.opt_level}"]
    asked += [options.precision] if options.precision != "model" else []
    asked += [f"without {name}" for name in options.without]
    asked += options.passes
    asked += [f"records {options.records}"] if options.records is not None else []
    asked += [f"{name}={size}" for name, size in sorted((shapes or {}).items())]
    return json.dumps([*names, *asked]).encode()


def about(entry: Entry) -> str:
    """Returns a description of the content of *entry*; an empty text for one that is damaged or gone."""
    try:
        if entry.kind == "model":
            return ", ".join(json.loads(read_checked(entry.path.with_name(f"about-{entry.key}"))))
        if entry.kind == "kernel":
            return str(json.loads(read_checked(entry.path).partition(b"\n")[0])["name"])
        return ", ".join(json.loads(read_checked(entry.path)))
    except (OSError, ArtifactError, ValueError):
        return ""
