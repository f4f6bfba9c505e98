"""A hash of the compiler's own files, which identifies its version in cache keys."""

from __future__ import annotations

import hashlib
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
    root = Path(weft.__file__).parent
    for path in [*sorted(root.rglob("*.py")), *header_files(), *source_files()]:
        joined.update(str(path.relative_to(root)).encode() + path.read_bytes())
    joined.update(Path(_rt.__file__).read_bytes())
    return joined.hexdigest()
