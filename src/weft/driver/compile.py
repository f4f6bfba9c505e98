"""`weft.compile`: compiles a model and loads it. A model in the cache is loaded without importing the compiler."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.driver.cache.cache_key import (
    Shapes,
    changed_since,
    claim_key,
    find_key,
    make_key,
    recorded_key,
    remember_files,
    remember_workloads,
)
from weft.driver.cache.code_cache import Cache, default_cache
from weft.driver.cache.describe_entry import describe
from weft.driver.cache.lock import Claim
from weft.driver.calibrate import target_here
from weft.driver.check_target import check_runs_here
from weft.driver.options import CompileOptions, check_options, check_shapes
from weft.driver.progress import Progress
from weft.driver.python_settings import collecting_new_objects, tuned_for_compiling
from weft.runtime.lazy_constants import LazyConstants
from weft.runtime.model import Model
from weft.runtime.package import Denormals, Package
from weft.support.arguments import check_bool, check_threads
from weft.support.errors import InputError
from weft.support.lazy_import import resolve
from weft.targets import Target

if TYPE_CHECKING:
    from weft.driver.build import Compilation

BUILD: Final = "weft.driver.build:build"
EXPORT: Final = "weft.frontends:export"
RUNNABLE: Final = "weft.driver.runnable:runnable"
"""Resolved only when a model has to be compiled, since they import the compiler."""


def compile(
    model: object,
    target: str = "cpu",
    threads: int | None = None,
    records: str | os.PathLike[str] | None = None,
    opt_level: int = 3,
    precision: str = "model",
    verify: bool = False,
    cache: bool = True,
    shapes: Shapes | None = None,
    progress: Progress | None = None,
    without: Sequence[str] = (),
    denormals: Denormals = "keep",
    spinning: bool = True,
    passes: Sequence[str] = (),
    state: Mapping[str, str] | None = None,
    capacity: Mapping[str, int] | None = None,
    example_inputs: Sequence[object] | Mapping[str, object] | None = None,
) -> Model:
    """Compiles *model* for *target* and loads it.

    *model* is one of:

    - the path or the bytes of an ONNX, PyTorch (`.pt2`), Keras or StableHLO file;
    - the path of a TensorFlow, Core ML, MXNet, Darknet or Caffe model, or the pair of paths of its description and its weights;
    - an `onnx.ModelProto`, a `torch.export.ExportedProgram`, or a lowered or exported JAX function;
    - a `torch.nn.Module` or a `jax.jit` function, traced with *example_inputs*: tensors in order or by name.

    *target* names the target: see `weft targets`. "cuda+cpu" names a device, and the host's processor for the nodes that suit it
    better. *threads* bounds the threads of a call (default: the CPUs available to this
    process) and never changes its results. *shapes* maps symbolic dimensions to sizes or ranges (`weft.Dim`, or text such as
    "1..64"), or inputs to whole shapes. *cache* reads and writes `weft-cache` in `$WEFT_CACHE_DIR` or `~/.cache/weft`: compiled
    models, and the kernels alone of models that are neither files nor bytes.

    *records* is the path of a database of tuning records: the graph and its kernels follow the fastest plans measured on this
    kind of machine. Weft ships with records for some machines, used where *records* has none; `without=["pretuned"]` ignores
    them.

    *opt_level*: 0 compiles the model's nodes one by one, 1 simplifies and fuses them, 2 also packs the weights of matrix
    products, 3 also uses channel-blocked layouts and Winograd convolutions.

    *precision*: "model" keeps the model's data types, may reassociate, and may split float32 in parts that add up to it. "strict"
    also forbids rewrites that round differently from the model. "bf16" rounds the factors of float32 and float16 products and
    convolutions to bfloat16 (8 significant bits) where that is faster on *target*; accumulation, normalization and softmax stay
    float32. "tf32" rounds the factors of float32 products and convolutions to 11 significant bits where *target* has
    instructions for it.

    *verify* runs the verifier of every graph and program. *progress* is called with the name of a stage, the number of its
    steps that are done, and the number of all of them. *without* disables optimizations, named in `weft.support.knobs`.
    *passes* skips passes or sets their options: `"unswitch_loops=off"`, `"unswitch_loops.depth=1"`.

    *denormals*: "keep" follows IEEE 754; "flush" replaces denormal operands and results by zero, since CPUs compute with them
    up to a hundred times more slowly. Constants computed at compile time keep them. With *spinning*, idle threads spin briefly
    before they sleep; without it they sleep at once, which makes calls slower and leaves the CPU to other processes.

    *state* turns inputs, each paired with the output that replaces it, into values that live across calls, in a `State` that
    the model's `new_state()` returns: `state={"past_*": "present_*"}`, where each * matches any text. States that grow with
    each call need a *capacity*, the largest number of rows: `capacity={"past_*": 1024}`.

    Raises `ModelError` if the model can't be compiled, `InputError` if an argument is invalid, and `RecordsError` if the
    records can't be read.
    """
    options = check_options(opt_level, precision, verify, records, without, denormals, passes, state, capacity)
    sizes, threads, cached = check_shapes(shapes), check_threads(threads), check_bool("cache", cache)
    if progress is not None and not callable(progress):
        raise InputError(
            f"progress is {progress!r}",
            hint="give a function that takes a stage, the number of steps done, and of all steps",
        )
    if example_inputs is not None:
        model = resolve(EXPORT)(model, example_inputs, sizes)
    store = default_cache() if cached else None
    machine = target_here(target, progress, store)
    check_runs_here(machine, target, "use `weft compile MODEL -o FILE`")
    package = compile_package(model, machine, options, sizes, store, progress)
    if package.source:
        package = resolve(RUNNABLE)(package, machine)
    return Model(package, threads=threads, spinning=spinning)


def compile_package(
    model: object,
    target: Target,
    options: CompileOptions,
    shapes: Shapes | None = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
    *,
    to_file: bool = False,
) -> Package:
    """Returns the package of *model*: the cached one if the model's files, the options and the compiler are unchanged.

    With *to_file*, the package of a large model is not cached: its constants are lazy, computed when the file is written.
    """
    request = CompileRequest(model, target, options, shapes, to_file)
    if cache is None:
        return _build(request, None, progress)
    found = _find(request, cache)
    if found is not None:
        return found
    key = claim_key(model, target, options, shapes)
    with cache.claim("model", key, partial(_tell, progress)) if key is not None else Claim():
        found = _find(request, cache)  # somebody may have made it between the look and the claim
        return found if found is not None else _build(request, cache, progress)


class CompileRequest(NamedTuple):
    """A model to compile, the options, and whether the result is only written to a file."""

    model: object
    target: Target
    options: CompileOptions
    shapes: Shapes | None
    to_file: bool

    @property
    def facts(self) -> tuple[Target, CompileOptions, Shapes | None]:
        """The inputs of the compilation other than the model, all of them part of the cache key."""
        return self.target, self.options, self.shapes


def _find(wanted: CompileRequest, cache: Cache) -> Package | None:
    """Returns the package of a model that was compiled before."""
    key = find_key(wanted.model, *wanted.facts, cache)
    if key is not None:
        key = recorded_key(key, wanted.target, wanted.options, cache)
    return cache.package(key) if key is not None else None


def _tell(progress: Progress | None) -> None:
    """Reports that another process is compiling the same model."""
    if progress is not None:
        progress("wait", 0, 1)


def _build(wanted: CompileRequest, cache: Cache | None, progress: Progress | None) -> Package:
    """Compiles a model, and keeps its package in *cache* if its files did not change meanwhile.

    A graph's nodes and values refer to one another: the weights that were read are let go when those are collected. The
    settings last until then: with Python's own, it would go through all objects at once when the last kernel is made, and
    again then.
    """
    with tuned_for_compiling(), collecting_new_objects():
        return _made(wanted, cache, progress)


def _made(wanted: CompileRequest, cache: Cache | None, progress: Progress | None) -> Package:
    """Compiles a model, and keeps its package.

    The key does not cover the formulas of operators from outside of Weft: models with such are not cached, though their kernels
    are.
    """
    start = time.time_ns()
    build: Callable[..., Compilation] = resolve(BUILD)
    to_file = wanted.to_file or cache is not None
    made = build(wanted.model, *wanted.facts, cache, progress, to_file=to_file)
    if cache is None or made.source.is_extended or changed_since(made.files, start):
        return made.package
    remember_files(made.files, cache)
    key = make_key(wanted.model, made.files, *wanted.facts)
    if key is not None and made.records:
        key = remember_workloads(key, made.records, cache)
    if key is None or made.package.source:  # its kernels are kept
        return made.package
    if wanted.to_file and isinstance(made.package.constants, LazyConstants):
        return made.package
    package = cache.put_package(key, made.package)
    cache.put("about", key, describe(wanted.model, made.files, *wanted.facts))
    return package
