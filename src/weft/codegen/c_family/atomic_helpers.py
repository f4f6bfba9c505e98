"""The helpers of atomic updates: any operation, by a compare-and-swap of the word that the element is.

    weft_atomic_max_f32((WEFT_GLOBAL uint32_t *)&y[i], x);

A language has the compare-and-swap by type, `swapped`, and in the head of its sources `WEFT_GLOBAL`, the words before the type of
memory that all threads see. Operations that it has itself take their helper's place (`native_updates`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_FORMS: Final = {
    "add": ("", "weft_of(old) + x"),
    "mul": ("", "weft_of(old) * x"),
    "min": (" min", "weft_min(weft_of(old), x)"),
    "max": (" max", "weft_max(weft_of(old), x)"),
}
UPDATE_TEMPLATES: Final = {
    f"atomic_{word}": f"""uses: of bits swapped{used}
static inline void weft_atomic_{word}(WEFT_GLOBAL U *place, T x) {{
  U old = *place;
  while (!weft_swapped(place, &old, weft_bits({form}))) {{}}
}}"""
    for word, (used, form) in _FORMS.items()
}
"""The helpers by name, of any type with `swapped`; see `c_family.helpers`."""


def swaps(text: str, types: Mapping[str, str], space: str = "") -> dict[str, str]:
    """Returns the compare-and-swaps of a language, by the type of the element and of its word.

    *text* tells whether `place` had `*old`, and was set to `made`; it sets `*old` to what there was otherwise. *space* are the
    words before the type of a thread's memory.
    """
    return {
        f"swapped_{t}": f"""static inline bool weft_swapped_{t}(WEFT_GLOBAL {word} *place, {space}{word} *old, {word} made) {{
  {text.replace("WORD", word)}
}}"""
        for t, word in types.items()
    }


def native_updates(functions: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """Returns the helpers of the updates that a language has, as statements about `place` and `x`, by operation and type."""
    return {
        f"atomic_{word}_{t}": f"""static inline void weft_atomic_{word}_{t}(WEFT_GLOBAL {_WORDS[t]} *place, {_TYPES[t]} x) {{
  {text}
}}"""
        for (word, t), text in functions.items()
    }


_TYPES: Final = {
    "f32": "float",
    "f64": "double",
    **{f"i{bits}": f"int{bits}_t" for bits in (32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (32, 64)},
}
_WORDS: Final = {t: f"uint{t[1:]}_t" for t in _TYPES}

WORDS_OF_32: Final = {t: word for t, word in _WORDS.items() if t.endswith("32")}
"""The types of 32 bits, each with that of its word."""

WORDS_OF_64: Final = {t: word for t, word in _WORDS.items() if t.endswith("64")}
"""Those of 64 bits."""
