"""Digests of texts: the keys of caches and of tuning records."""

from __future__ import annotations

import hashlib


def digest(*parts: object) -> str:
    """Returns a key for *parts*, by their text: 40 hexadecimal digits of a SHA-256."""
    joined = hashlib.sha256()
    for part in parts:
        text = str(part).encode()
        joined.update(len(text).to_bytes(8, "little") + text)
    return joined.hexdigest()[:40]
