"""Cases of operators: models of one node, each at three sizes: small, large, and awkward, and the table of them.

The awkward sizes are multiples of nothing: primes, and rows a little longer than a vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from onnx import ModelProto, helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
SIZES: Final = ("small", "large", "awkward")
MICROSOFT: Final = "com.microsoft"
OPSETS: Final = (22, 24, 18, 13, 9)
"""Versions of the operators, the first that a runtime takes is used."""

WITHOUT_TIME: Final = frozenset(
    {
        "Constant",
        "If",
        "Loop",
        "Scan",
        "Identity",
        "Shape",
        "Size",
        "Dropout",
        "BitCast",
        # of chance, whose results can't be compared
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        # of strings, which ONNX Runtime takes from no address: beside the making of them its times say little
        "CategoryMapper",
        "StringConcat",
        "StringSplit",
        "Tokenizer",
        "StringNormalizer",
        "RegexFullMatch",
        "MelWeightMatrix",
        "Optional",
        "OptionalHasElement",
        "OptionalGetElement",
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceInsert",
        "SequenceErase",
        "SequenceAt",
        "SequenceLength",
        "SplitToSequence",
        "ConcatFromSequence",
    }
)
"""Operators that compute nothing by themselves, or whose work is that of the nodes in them."""


@dataclass(frozen=True)
class Case:
    """A node: its inputs by name in order (None: left out), which of them are constants, its attributes and its outputs."""

    operator: str
    size: str
    inputs: dict[str, Array | None]
    constants: frozenset[str] = frozenset()
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = ""

    @property
    def label(self) -> str:
        shapes = ["x".join(map(str, a.shape)) or "1" for a in self.inputs.values() if a is not None]
        return f"{self.operator} {self.size} ({' '.join(shapes)})"

    @property
    def given(self) -> dict[str, Array]:
        """Return the arrays that the model is called with."""
        return {n: a for n, a in self.inputs.items() if a is not None and n not in self.constants}

    def model(self, opset: int) -> ModelProto:
        names = [n if a is not None else "" for n, a in self.inputs.items()]
        outputs = [f"y{k}" for k in range(self.outputs)]
        node = helper.make_node(self.operator, names, outputs, domain=self.domain, **self.attributes)
        given = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in self.given.items()
        ]
        held = [numpy_helper.from_array(a, n) for n, a in self.inputs.items() if a is not None and n in self.constants]
        made = [helper.make_empty_tensor_value_info(n) for n in outputs]
        graph = helper.make_graph([node], "operator", given, made, held)
        imports = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)


rng = np.random.default_rng(0)


def f(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def u(*shape: int) -> Array:
    return rng.uniform(0.1, 0.9, shape).astype(np.float32)


def ints(high: int, *shape: int) -> Array:
    return rng.integers(0, high, shape)


def bits(*shape: int) -> Array:
    return rng.integers(0, 2, shape).astype(bool)


def bytes_(*shape: int) -> Array:
    return rng.integers(0, 255, shape).astype(np.uint8)


def i64(*values: int) -> Array:
    return np.array(values, np.int64)


Build = Callable[[int], dict[str, Any]]
"""Makes the fields of a case of a size, by its number."""

CASES: Final[dict[str, Build]] = {}
ROWS: Final = ((16, 64), (1024, 1024), (61, 1337))
FLAT: Final = ((256,), (1024, 1024), (61, 127, 13))
IMAGES: Final = ((1, 8, 14, 14), (1, 64, 112, 112), (2, 13, 37, 53))
CONV: Final = (
    ((1, 8, 14, 14), (16, 8, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 64, 56, 56), (128, 64, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ((1, 384, 3000), (384, 384, 3), {"pads": [1, 1], "strides": [2]}),
)
PRODUCTS: Final = (((16, 16), (16, 16)), ((128, 512), (512, 512)), ((61, 131), (131, 97)))
CELLS: Final = ((4, 1, 16, 16), (32, 8, 128, 128), (7, 3, 37, 41))  # steps, batch, features and states
STEP: Final = np.float32(0.1)


def case(*names: str) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        for name in names:
            CASES[name] = build
        return build

    return register


def plain(
    names: str,
    make: Callable[[int], list[Array]],
    constants: str = "",
    outputs: int = 1,
    domain: str = "",
    **attributes: Any,
) -> None:
    """Register operators that all take the inputs that *make* makes, called a, b, c ... An attribute may be given by size."""

    def build(s: int) -> dict[str, Any]:
        return {
            "inputs": dict(zip("abcdefghijkl", make(s), strict=False)),
            "constants": frozenset(constants),
            "attributes": {k: v(s) if callable(v) else v for k, v in attributes.items()},
            "outputs": outputs,
            "domain": domain,
        }

    case(*[f"{domain}.{n}" if domain else n for n in names.split()])(build)
