"""The section on PyTorch of the page `docs/operators_of_formats.md`: operators with rows, and those that are decomposed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

import weft.frontends.torch.nodes  # noqa: F401 # which fills the tables
from weft.frontends.torch.complex_numbers import COMPLEX
from weft.frontends.torch.decompose import decompositions, name_of
from weft.frontends.torch.ops.complex_numbers import PART_BY_PART
from weft.frontends.torch.registry import TABLE

NOT_READ: Final[Mapping[str, str]] = {
    "special_airy_ai, poisson, binomial, hash_tensor": "not supported",
    "linalg_eig of complex matrices, linalg_lstsq": "compute with the real and the imaginary part, or by `pinv`",
    "_ctc_loss, unique_dim": "results whose sizes the data tell",
    "grid_sampler_2d_backward, _cdist_backward and other gradients without a decomposition": "PyTorch runs such a graph, with a "
    "warning",
    "sparse and nested tensors, quantized tensors, elements of float8": "give dense ones of a type that is supported",
    "operators of one's own (torch.library)": "PyTorch does not tell what they compute",
}


def section() -> list[str]:
    """Returns the lines of the section."""
    rows = {"": TABLE, "complex numbers: ": COMPLEX}
    families: dict[str, set[str]] = defaultdict(set)
    for kind, table in rows.items():
        for name in table:
            families[kind + _family(table[name])].add(short(name))
    families["complex numbers: part by part"] = {short(n) for n in PART_BY_PART}
    known = {n for names in families.values() for n in names}
    decomposed = {short(name_of(op)) for op in decompositions() if name_of(op).startswith("aten.")}
    decomposed = {name for name in decomposed - known if not name.startswith("_")}  # those are PyTorch's own
    return [
        "",
        "## PyTorch",
        "",
        f"{len(known)} operators have rows. Names are those of `aten`, whose overloads are not told apart here.",
        "",
        "| | |",
        "|---|---|",
        *_rows(families),
        "",
        f"PyTorch's own decompositions make others of {len(decomposed)} more, and of changes in place, as far as these are read "
        "([why](design/0054-pytorch-is-read-by-its-own-decompositions.md)):",
        "",
        _listed(decomposed) + ".",
        "",
        "| not read | why, and what to do |",
        "|---|---|",
        *[f"| {name} | {why} |" for name, why in NOT_READ.items()],
    ]


def short(name: str) -> str:
    """Returns an operator's name without that of `aten`, and without that of its overload."""
    space, _, rest = name.partition(".")
    return rest.partition(".")[0] if space == "aten" else name.removesuffix(".default")


def _family(translation: Any) -> str:
    return str(translation.__module__).rpartition(".")[2].replace("_", " ")


def _rows(families: Mapping[str, set[str]]) -> list[str]:
    return [f"| {family} | {_listed(families[family])} |" for family in sorted(families)]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)).replace("*", "\\*")
