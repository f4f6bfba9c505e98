"""A hash of the compiler's own files, which identifies its version in cache keys."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

import weft
from weft.native import _rt, header_files, source_files


@cache
def source_hash() -> str:
    """Returns a hash of Weft's own source, and of its native part: code from another version is never reused.

    The native part counts as it was built, in the extension, and as it would be built again.
    """
    joined = hashlib.sha256()
    root = os.path.dirname(weft.__file__)
    own = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith(".py")]
    for path in [
        *sorted(own),
        *map(str, header_files()),
        *map(str, source_files()),
    ]:  # a path of pathlib costs as much as its file
        with open(path, "rb", buffering=0) as file:
            joined.update(path[len(root) :].encode() + file.read())
    joined.update(Path(_rt.__file__).read_bytes())
    return joined.hexdigest()
