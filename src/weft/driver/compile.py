"""`weft.compile`: from a model to something that runs it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from weft.codegen.llvm.compile import llvm_version
from weft.driver.build import Compilation, Progress, build, input_specs
from weft.driver.cache import Cache, default_cache, digest, source_hash
from weft.driver.options import Options
from weft.frontends import files_of, to_graph
from weft.graph.graph import Graph
from weft.runtime.model import Model
from weft.runtime.package import Package, TensorSpec
from weft.support.errors import InputError
from weft.targets.cpu import can_run, parse_target
from weft.targets.target import Target

Shapes: TypeAlias = Mapping[str, int | Sequence[int]]


def compile(
    model: object,
    target: str = "cpu",
    threads: int | None = None,
    records: str | None = None,
    opt_level: int = 3,
    precision: str = "model",
    verify: bool = False,
    cache: bool = True,
    shapes: Shapes | None = None,
    progress: Progress | None = None,
) -> Model:
    """Compiles *model* for *target* and loads it.

    *model* is the path of an ONNX file, its bytes, or an `onnx.ModelProto`. *threads* bounds the threads of a call (default:
    the processors that this process may use) and never changes its results. *shapes* gives sizes to symbolic dimensions, by their
    names or by the inputs' names. *verify* checks every program on the way. *cache* keeps compiled code in
    `$WEFT_CACHE_DIR` or `~/.cache/weft`. Raises `ModelError` for a model that can't be compiled, `InputError` for
    arguments that don't fit.
    """
    machine = parse_target(target)
    if not can_run(machine):
        raise InputError(f"code for {target!r} does not run on this machine", hint="use `weft compile MODEL -o FILE`")
    options = check_options(opt_level, precision, verify, records)
    store = default_cache() if cache else None
    return Model(compile_package(model, machine, options, shapes, store, progress), threads=threads)


def check_options(opt_level: int, precision: str, verify: bool, records: str | None) -> Options:
    """Returns the options; raises `InputError` for values that there are not."""
    if opt_level not in range(4):
        raise InputError(f"opt_level is {opt_level!r}", hint="use 0, 1, 2 or 3")
    if precision not in ("model", "strict"):
        raise InputError(f"precision is {precision!r}", hint='use "model" or "strict"')
    if records is not None:
        raise InputError("tuning records can't be used yet", hint="leave records out")
    return Options(opt_level, precision, verify)


def compile_package(
    model: object,
    target: Target,
    options: Options,
    shapes: Shapes | None = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Package:
    """Returns the package of *model*, from the cache if the model's files, the options and the compiler are the same."""
    key = model_key(model, target, options, shapes) if cache is not None else None
    if cache is None or key is None:
        return compile_model(model, target, options, shapes, cache, progress).package
    found = cache.package(key)
    if found is None:
        found = compile_model(model, target, options, shapes, cache, progress).package
        cache.put_package(key, found)
    return found


def compile_model(
    model: object,
    target: Target,
    options: Options,
    shapes: Shapes | None = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Compilation:
    """Compiles *model* and returns all that was made on the way; kernels come from the cache where it has them."""
    graph = model if isinstance(model, Graph) else to_graph(model, shapes)
    return build(graph, target, options, cache, progress)


def model_key(model: object, target: Target, options: Options, shapes: Shapes | None) -> str | None:
    """Returns the cache key of a model that is a file, from what the system says of its files; None for any other.

    Raises `ModelError` if a file can't be read.
    """
    if not isinstance(model, str | os.PathLike):
        return None
    facts = []
    for path in files_of(Path(model)):
        found = path.stat()
        facts.append((str(path.resolve()), found.st_ino, found.st_size, found.st_mtime_ns))
    given = sorted((name, str(s)) for name, s in (shapes or {}).items())
    return digest(facts, given, target.fingerprint(), options, source_hash(), llvm_version())


def signature(model: object, shapes: Shapes | None = None) -> tuple[TensorSpec, ...]:
    """Returns the inputs that *model* takes, without compiling it."""
    return input_specs(model if isinstance(model, Graph) else to_graph(model, shapes))
