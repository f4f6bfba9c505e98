"""Operators on strings, and tables, equal what TensorFlow computed (`make_text_cases`)."""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import weft

FOLDER: Final = Path(__file__).parent / "cases"
with np.load(io.BytesIO(lzma.decompress((FOLDER / "texts.npz.xz").read_bytes()))) as _archive:
    ARRAYS: Final[dict[str, Any]] = dict(_archive)


def arrays(case: str, kind: str) -> list[Any]:
    return [ARRAYS[f"{case}.{kind}{k}"] for k in range(len(ARRAYS)) if f"{case}.{kind}{k}" in ARRAYS]


def given(array: Any) -> Any:
    return array.astype(object) if array.dtype.kind == "U" else array


def check(got: Any, want: Any) -> None:
    assert got.shape == want.shape
    if want.dtype.kind == "U":
        assert got.tolist() == want.tolist()
        return
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", sorted(name.removesuffix(".graph") for name in ARRAYS if name.endswith(".graph")))
def test_operator(case: str) -> None:
    made = weft.compile(ARRAYS[f"{case}.graph"].tobytes())(*map(given, arrays(case, "input")))
    results, wanted = made if isinstance(made, tuple) else (made,), arrays(case, "output")
    assert len(results) == len(wanted)
    for got, want in zip(results, wanted, strict=True):
        check(got, want)


@pytest.mark.parametrize("name", ["tables", "vectorized"])
def test_saved_tables(name: str) -> None:
    model = weft.compile(FOLDER / name)
    with np.load(FOLDER / name / "wanted.npz") as held:
        made = model(given(held["input"]))
        results = made if isinstance(made, tuple) else (made,)
        for output, got in zip(model.outputs, results, strict=True):
            check(got, held[f"output_{output.name}"])


def test_patterns_with_choices_are_refused() -> None:
    graph = ARRAYS["StaticRegexReplace.graph"].tobytes().replace(b"[aeiou]+", b"(aa|ab)+")
    with pytest.raises(weft.ModelError, match=r"the matches of '\(aa\|ab\)\+' are not always the longest ones"):
        weft.compile(graph)
