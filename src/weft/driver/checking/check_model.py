"""Compares a compiled model with the reference on seeded inputs, and locates the cause of a difference.

    weft compile MODEL -o OUT --verify

The error names the pass, or the kernel and the step of its making, that is at fault, and a file with a part of the model that
still fails: `python -m weft.driver.reproduce FILE` shows the same.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from weft.driver.build import Compilation, build
from weft.driver.cache.cache_key import Shapes
from weft.driver.calibrate import target_here
from weft.driver.checking.agreement import OTHER_FLOATS, Array, difference
from weft.driver.checking.locate_fault import locate_fault
from weft.driver.checking.reduce_graph import reduce_graph
from weft.driver.checking.reference import run_graph
from weft.driver.measure.random_inputs import random_inputs
from weft.driver.measure.same_seeds import SEED, same_seeds
from weft.driver.options import CompileOptions, check_options
from weft.graph import Graph, load_graph, save_graph
from weft.runtime.model import Model
from weft.runtime.package import Package
from weft.support.dim import Dim
from weft.support.dtypes import handle
from weft.support.errors import VerifyError, WeftError
from weft.support.knobs import Switches
from weft.targets import Target, can_run

REDUCED: Final = "reduced.npz"
"""The name of files with a part of a model."""


def check_model(
    package: Package, model: object, target: Target, options: CompileOptions, shapes: Shapes | None = None
) -> bool:
    """Compares *package*, compiled from *model* with these options, with the reference; tells whether it could.

    It can't for another target than this machine, and for models with states. Raises `VerifyError` where an output differs.
    """
    if not can_run(target) or package.source or options.states or target.kind == "grid":
        return False
    inputs = random_inputs(Model(package).inputs, SEED, _sizes(shapes))
    made = build(model, target, options, shapes)
    wanted = run_graph(made.source, inputs)
    told = _difference(package, inputs, wanted, options)
    if told is not None:
        raise _error(made, options, inputs, wanted, told)
    return True


def _sizes(shapes: Shapes | None) -> dict[str, int | Dim]:
    return {name: n for name, n in (shapes or {}).items() if isinstance(n, int | Dim)}


@same_seeds()
def _difference(
    package: Package, inputs: Mapping[str, Array], wanted: Sequence[Array], options: CompileOptions
) -> tuple[str, str] | None:
    """Returns the name of the first output that differs, and how."""
    model = Model(package)
    made = model.run([inputs[spec.name] for spec in model.inputs])
    tolerance = OTHER_FLOATS if options.rounds else None
    for spec, a, b in zip(model.outputs, made, wanted, strict=True):
        found = difference(a, b, tolerance)
        if found is not None:
            return spec.name, found
    return None


def _error(
    made: Compilation,
    options: CompileOptions,
    inputs: Mapping[str, Array],
    wanted: Sequence[Array],
    told: tuple[str, str],
) -> VerifyError:
    name, how = told
    if any(v.dtype is handle for v in made.source.inputs):
        fault, path = "unknown: models of strings are not bisected", None
    else:
        fault, path = str(locate_fault(made, options, inputs, wanted)), _reduced(made, options)
    hint = "report this bug in Weft"
    if path is not None:
        hint += (
            f"; a part of the model that still fails is in {path}: `python -m weft.driver.reproduce {path}` shows it"
        )
    return VerifyError(
        f"the compiled model is wrong by the reference interpreter: {how}; at fault is {fault}",
        where=f"output {name}",
        hint=hint,
    )


def _reduced(made: Compilation, options: CompileOptions) -> Path | None:
    """Writes a part of the model that fails to a file; None where it no longer does when it is read again."""

    def fails(graph: Graph) -> bool:
        try:
            built = build(graph, made.target, options)
            inputs = random_inputs(built.package.inputs, SEED)
            return _difference(built.package, inputs, run_graph(graph, inputs), options) is not None
        except WeftError:
            return False

    path = Path(tempfile.mkdtemp(prefix="weft-")) / REDUCED
    plain = Switches(options.opt_level, options.precision, options.without, options.passes)
    save_graph(reduce_graph(made.source, fails), path, {"target": made.target.name, "switches": asdict(plain)})
    return path if fails(load_graph(path)[0]) else None


def check_saved(path: Path) -> bool:
    """Compares the part of a model in a file, which an error of `check_model` names, again; returns and raises as that does."""
    graph, facts = load_graph(path)
    options = check_options(**facts["switches"])
    target = target_here(facts["target"])
    return check_model(build(graph, target, options).package, graph, target, options)
