"""The table of ONNX operators as text; `python -m weft.frontends.onnx.table` prints it as the page `docs/operators.md`."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import Final

import onnx.defs

from weft.frontends.onnx import translations  # noqa: F401  (fills TABLE)
from weft.frontends.onnx.contrib import MICROSOFT
from weft.frontends.onnx.registry import NEWEST_OPSET, TABLE, Entry

_TITLES: Final = {
    "elementwise": "Arithmetic, comparison and logic",
    "activation": "Activations",
    "creation": "Constants and generated tensors",
    "control": "Control flow",
    "indexing": "Gathering, scattering and sorting",
    "linear": "Matrix products",
    "convolution": "Convolution and pooling",
    "normalization": "Normalisation",
    "quantization": "Quantisation",
    "recurrent": "Recurrent networks",
    "spectral": "Spectra",
    "training": "Optimizers",
    "sequence": "Sequences and optional values",
    "features": "Classical machine learning: features",
    "label_maps": "Classical machine learning: maps",
    "linear_models": "Classical machine learning: linear models",
    "support_vectors": "Classical machine learning: support vector machines",
    "trees": "Classical machine learning: decision trees",
    "ngrams": "Classical machine learning: text",
    "random_operators": "Random numbers",
    "reduction": "Reductions",
    "string_operators": "Strings",
    "tokenizer": "ONNX Runtime's: tokens of strings",
    "resize": "Resampling",
    "movement": "Shapes and movement",
    "packed_weights": "ONNX Runtime's: products with packed weights",
    "quantized_functions": "ONNX Runtime's: functions of quantised tensors",
    "quantized_products": "ONNX Runtime's: products of quantised tensors",
    "quantized_recurrent": "ONNX Runtime's: recurrent layers of quantised weights",
    "attention": "ONNX Runtime's: attention",
    "grouped_query_attention": "ONNX Runtime's: attention of groups of heads",
    "fused_products": "ONNX Runtime's: products fused with what is around them",
    "gelu_variants": "ONNX Runtime's: Gaussian error linear units",
    "skip_normalization": "ONNX Runtime's: normalisations fused with sums and embeddings",
}


def page() -> str:
    """Returns the page that lists every operator, by family."""
    own = len([name for domain, name in TABLE if not onnx.defs.has(name, domain)])
    families: dict[str, list[Entry]] = defaultdict(list)
    for entry in TABLE.values():
        families[entry.family].append(entry)
    lines = [
        "# ONNX operators",
        "",
        "This page is made from the table that imports models: `python -m weft.frontends.onnx.table > docs/operators.md`.",
        "",
        f"Weft imports {len(TABLE) - own} operators of ONNX, at operator sets 1 to {NEWEST_OPSET}, and {own} of those that ONNX "
        f"Runtime adds, most of them of the domain `{MICROSOFT}`. Operators that ONNX itself defines "
        "as functions of others (such as `Celu` or `RotaryEmbedding`) and functions that a model brings with it are "
        "expanded, so they need no entry.",
        "",
        "An index outside of what it chooses from is an error: of a constant when the model is compiled, else a `RuntimeFailure` "
        "of the call, which names the node, the index and its range. No kernel reads there.",
        "",
        "NaN is above all numbers where numbers are put in order: `TopK` gives it first among the largest and last among the "
        "smallest, `ArgMax`, `ArgMin` and `Hardmax` choose the first NaN, as NumPy does. Maxima and minima (`Max`, `Min`, "
        "`ReduceMax`, `ReduceMin`, `MaxPool`, `Clip`, `Relu`) of NaN are NaN.",
        "",
        "Of ONNX's 2007 cases 2000 pass. [The others](design/0067-differences-are-listed.md), and what differs from ONNX "
        "Runtime and scikit-learn, are listed with the causes.",
    ]
    for family in sorted(families, key=lambda f: _TITLES[f]):
        lines += ["", f"## {_TITLES[family]}", "", "| operator | not supported |", "|---|---|"]
        lines += [f"| {e.name} | {e.limits} |" for e in sorted(families[family], key=lambda e: e.name)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
