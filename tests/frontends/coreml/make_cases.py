"""Makes a program of each of Core ML's operations and a network of each layer, with inputs and outputs, in `cases.npz.xz`.

Outputs are those of a formula of NumPy or PyTorch that a case gives, and those of coremltools' own inference of values where it
has one for the operation; where there are both, they have to be equal.

Run it by a Python that has coremltools 9 and torch: `python -m tests.frontends.coreml.make_cases`.
"""

from __future__ import annotations

import io
import logging
import lzma
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import coremltools as ct
import numpy as np
from coremltools.converters.mil.mil import Builder, Function, Program
from coremltools.converters.mil.mil import types as mil_types
from tests.frontends.coreml.cases import (
    blocks_and_weights,
    choices_and_sizes,
    elementwise_and_movement,
    layers_of_images,
    layers_of_networks,
    layers_of_sizes,
    products_and_updates,
    recurrent_layers,
    resampling,
    windows_and_norms,
)
from tests.frontends.coreml.cases.entering import CASES, INFERRED_OTHERWISE
from tests.frontends.coreml.cases.entering_layers import LAYERS

FOLDER = Path(__file__).parent
FILES = (
    elementwise_and_movement,
    layers_of_images,
    layers_of_networks,
    layers_of_sizes,
    products_and_updates,
    windows_and_norms,
    resampling,
    recurrent_layers,
    blocks_and_weights,
    choices_and_sizes,
    layers_of_sizes,
)
"""Each enters its cases where it is imported."""
TYPES = {"float32": mil_types.fp32, "int32": mil_types.int32, "float16": mil_types.fp16}
NAMES = {15: ct.target.iOS15, 16: ct.target.iOS16, 17: ct.target.iOS17, 18: ct.target.iOS18}


def built(build: Callable[..., Any], given: dict[str, Any], version: int) -> Program:
    """Returns a program of what *build* adds for inputs *given*."""
    program = Program()
    placeholders = {k: Builder.placeholder(shape=v.shape, dtype=TYPES[v.dtype.name]) for k, v in given.items()}
    with Function(placeholders, opset_version=NAMES[version]) as function:
        made = build(*[function.inputs[k] for k in given])
        function.set_outputs([as_output(v) for v in (made if isinstance(made, tuple | list) else (made,))])
        program.add_function("main", function)
    return program


def as_output(v: Any) -> Any:
    """Returns a result that a program may have: one that is computed, and no truth value."""
    return Builder.cast(x=v, dtype="fp32") if v.dtype == mil_types.bool else Builder.identity(x=v)


def inferred(build: Callable[..., Any], given: dict[str, Any], version: int) -> list[Any] | None:
    """Returns the outputs that coremltools infers where inputs are constants; None where it infers none."""
    found: list[Any] = []
    program = Program()
    with Function({"unused": Builder.placeholder(shape=(1,))}, opset_version=NAMES[version]) as function:
        made = build(*[Builder.const(val=v) for v in given.values()])
        found += [v.val for v in (made if isinstance(made, tuple | list) else (made,))]
        function.set_outputs([Builder.identity(x=function.inputs["unused"])])
        program.add_function("main", function)
    return None if any(v is None for v in found) else [np.asarray(v) for v in found]


def outputs(name: str, wanted: Callable[..., Any] | None, build: Any, given: dict[str, Any], version: int) -> list[Any]:
    """Returns the outputs of a case, checked against coremltools' where there are both."""
    try:
        theirs = None if name in INFERRED_OTHERWISE else inferred(build, given, version)
    except Exception as error:
        print(f"{name}: {type(error).__name__} {error}")
        theirs = None
    if wanted is None:
        assert theirs is not None, f"{name}: give its outputs"
        return theirs
    made = wanted(*given.values())
    ours = [np.asarray(v) for v in (made if isinstance(made, tuple | list) else (made,))]
    for a, b in zip(ours, theirs or ours, strict=True):
        assert a.shape == b.shape, (name, a.shape, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=name)
    return ours


def main() -> None:
    logging.disable(logging.WARNING)
    arrays: dict[str, Any] = {}
    for name, (build, given, wanted, version) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            program = built(build, given, version)
            model = ct.convert(
                program,
                convert_to="mlprogram",
                pass_pipeline=ct.PassPipeline.EMPTY,
                compute_precision=ct.precision.FLOAT32,
                minimum_deployment_target=NAMES[version],
                skip_model_load=True,
            )
            model.save(f"{folder}/a.mlpackage")
            inner = Path(folder) / "a.mlpackage/Data/com.apple.CoreML"
            arrays[f"{name}:model"] = np.frombuffer((inner / "model.mlmodel").read_bytes(), np.uint8)
            for file in inner.glob("weights/weight.bin"):
                arrays[f"{name}:weights"] = np.frombuffer(file.read_bytes(), np.uint8)
        arrays.update({f"{name}:input {k}": v for k, v in given.items()})
        arrays.update({f"{name}:output {k}": v for k, v in enumerate(outputs(name, wanted, build, given, version))})
    for name, (model, given, wanted) in LAYERS.items():
        made = wanted(*given.values())
        arrays[f"layer {name}:model"] = np.frombuffer(model, np.uint8)
        arrays.update({f"layer {name}:input {k}": v for k, v in given.items()})
        for k, v in enumerate(made if isinstance(made, tuple | list) else (made,)):
            arrays[f"layer {name}:output {k}"] = np.asarray(v, np.float32)
    whole = io.BytesIO()
    np.savez(whole, **arrays)
    (FOLDER / "cases.npz.xz").write_bytes(lzma.compress(whole.getvalue(), preset=9))


if __name__ == "__main__":
    main()
