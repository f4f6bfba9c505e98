"""Ways to go wrong, one for each thing that Weft says then: what docs/errors.md is made from."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from tests.codegen.interp.test_threads import REVERSED, launch
from tests.driver.results.test_guards import CASES as INDICES
from tests.driver.test_errors import CALLS, MODELS, graph, node
from tests.models import mlp
from tests.schedule.programs import matmul

import weft
from weft import te
from weft.cli.models import read_inputs
from weft.codegen.interp import run as interpret
from weft.codegen.interp.faults import ExecutionError
from weft.codegen.interp.threads.races import DivergenceError, RaceError
from weft.codegen.llvm.object_code import compile_function_module
from weft.codegen.objects import link
from weft.driver.cache.cache_folder import NAME, check_folder
from weft.driver.cache.code_cache import Cache
from weft.ir import Var, const, index
from weft.ir.text.parser import TextError
from weft.loop import Buffer, Function, Program, Store, parse_program, verify
from weft.records import Measurement
from weft.records import Store as RecordStore
from weft.schedule import Schedule
from weft.support.dtypes import f32, i64
from weft.support.errors import GradientError, TypeMismatch, UnknownValues, VerifyError
from weft.support.files import check_output
from weft.targets import host

INDEXED, WRONG_INDEX = INDICES["Gather"][0], INDICES["Gather"][2]


@dataclass(frozen=True)
class Case:
    """A way to go wrong: what was done, the error that is raised, and how to do it again in an empty folder."""

    title: str
    error: type[Exception]
    fail: Callable[[Path], object]


def compiling(**options: object) -> Callable[[Path], object]:
    """Returns a way to compile a model with wrong options."""
    return lambda _: weft.compile(mlp(), **options)  # type: ignore[arg-type] # that is the point


def making(make: Callable[[Path], Path]) -> Callable[[Path], object]:
    """Returns a way to compile a file that *make* writes."""
    return lambda folder: weft.compile(make(folder))


@cache
def compiled_mlp() -> weft.Model:
    """Returns a model for those who only call or save it."""
    return weft.compile(mlp())


def calling(call: Callable[[weft.Model], object]) -> Callable[[Path], object]:
    """Returns a way to call a model wrongly."""
    return lambda _: call(compiled_mlp())


def of_models() -> list[Case]:
    """Returns the cases of the tests of models and of calls."""
    models = [Case(name, kind, making(make)) for name, (make, kind, _) in MODELS.items()]
    return models + [Case(name, weft.InputError, calling(call)) for name, (call, _) in CALLS.items()]


def reading(option: str) -> Callable[[Path], object]:
    """Returns a way to give a wrong `--input`, in a folder with files that hold no array."""

    def fail(folder: Path) -> object:
        (folder / "notes.txt").write_text("no array")
        return read_inputs([option.replace("DIR", str(folder))])

    return fail


def loading(content: bytes | None = None) -> Callable[[Path], object]:
    """Returns a way to load a file with this content; None for a saved model of which one byte is another."""

    def fail(folder: Path) -> object:
        path = folder / "model.weft"
        compiled_mlp().save(path)
        data = path.read_bytes() if content is None else content
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        return weft.load(path)

    return fail


def axes_by_input(_: Path) -> object:
    nodes = [node("Squeeze", "x axes", "y", "/squeeze")]
    model = graph(nodes, [("x", [6, 1]), ("axes", ["m"])])  # type: ignore[list-item]
    model.graph.input[1].type.tensor_type.elem_type = 7  # int64
    return weft.compile(model)


def outer_product(_: Path) -> object:
    model = weft.compile(graph([node("Mul", "x y", "z", "/mul")], [("x", ["n", 1]), ("y", [1, "m"])], output="z"))  # type: ignore[list-item]
    return model(np.ones((1 << 24, 1), np.float32), np.ones((1, 1 << 24), np.float32))


def shared_cache(folder: Path) -> None:
    (folder / NAME).mkdir()
    (folder / NAME).chmod(0o777)
    check_folder(folder / NAME)


def linked_cache(folder: Path) -> None:
    (folder / NAME).symlink_to(folder)
    check_folder(folder / NAME)


def cache_with_other_files(folder: Path) -> None:
    (folder / NAME).mkdir(mode=0o700)
    (folder / NAME / "thesis.tex").touch()
    check_folder(folder / NAME)


def cache_of_a_file(folder: Path) -> object:
    (folder / "file").touch()
    return Cache(folder / "file").entries()


def parallel_reduction(_: Path) -> None:
    s = Schedule(matmul().program)
    s.parallel(s.loops(s.block("C"))[2])


def twice(_: Path) -> object:
    made = compile_function_module(parse_program("def f(x: f32[4]):\n    x[0] = 1.0\n"), host())
    return link([made, made])


def no_derivative(_: Path) -> object:
    x, t = te.placeholder((3,), f32, "x"), te.placeholder((3,), i64, "t")
    return te.gradient(te.compute((3,), lambda i: x[t[i]]), [t])


def unknown_buffer(_: Path) -> None:
    store = Store(Buffer("A", (index(4),), f32), (index(0),), const(1.0, f32), None)
    verify(Program((Function("f", (), store),)))


def still_parallel(_: Path) -> object:
    text = "def f(x: f32[8]):\n    for i in parallel(0, 8):\n        x[i] = 1.0\n"
    return compile_function_module(parse_program(text), host())


def interpreting(body: str, value: object) -> Callable[[Path], object]:
    """Returns a way to interpret a program that must not go on."""
    return lambda _: interpret(parse_program(body), [value])  # type: ignore[list-item]


def opening(make: Callable[[Path], object]) -> Callable[[Path], object]:
    """Returns a way to compile with tuning records in a file that *make* writes."""

    def fail(folder: Path) -> object:
        make(folder / "tune.db")
        return weft.compile(mlp(), records=folder / "tune.db")

    return fail


def damaged_records(path: Path) -> None:
    with RecordStore(path) as store:
        store.add(*[Measurement("w", "h", "0.1.0", f"plan {n}" * 99) for n in range(99)])
    path.write_bytes(path.read_bytes()[:9000])


CASES: tuple[Case, ...] = (
    *of_models(),
    Case("what is no model", weft.ModelError, lambda _: weft.compile(42)),
    Case("a size for a dimension that there is not", weft.ModelError, compiling(shapes={"bach": 2})),
    Case("a shape that an input decides", UnknownValues, axes_by_input),
    Case("an optimization level that there is not", weft.InputError, compiling(opt_level=4)),
    Case("records that are no path", weft.InputError, compiling(records=3)),
    Case("a precision that there is not", weft.InputError, compiling(precision="fp16")),
    Case("an optimization that there is not", weft.InputError, compiling(without=["magic"])),
    Case("no threads", weft.InputError, compiling(threads=0)),
    Case("a target that there is not", weft.InputError, compiling(target="gpu")),
    Case("a CPU level that there is not", weft.InputError, compiling(target="cpu -mattr=mmx")),
    Case("--input without a file", weft.InputError, reading("x")),
    Case("--input with a file that is not there", weft.InputError, reading("x=DIR/gone.npy")),
    Case("--input with a file that holds no array", weft.InputError, reading("x=DIR/notes.txt")),
    Case("an object that is no saved model", weft.InputError, lambda _: weft.load(io.BytesIO())),  # type: ignore[arg-type]
    Case("a saved model under another kind's name", weft.ArtifactError, lambda _: compiled_mlp().save("mlp.so")),
    Case("a file that is no saved model", weft.ArtifactError, loading(b"#!/bin/sh\n")),
    Case("a saved model that was altered", weft.ArtifactError, loading()),
    Case("a saved model that is not there", weft.ArtifactError, lambda f: weft.load(f / "gone.weft")),
    Case("an output in a folder that is not there", weft.ArtifactError, lambda f: check_output(f / "gone" / "m.weft")),
    Case("an output in the place of a folder", weft.ArtifactError, check_output),
    Case("a folder that others may write to", weft.CacheError, shared_cache),
    Case("a link in the place of the folder", weft.CacheError, linked_cache),
    Case("a folder with other files", weft.CacheError, cache_with_other_files),
    Case("a file in the place of the folder", weft.CacheError, cache_of_a_file),
    Case("tuning records that are not there", weft.RecordsError, opening(lambda path: None)),
    Case(
        "tuning records that are something else", weft.RecordsError, opening(lambda path: path.write_bytes(b"x" * 9999))
    ),
    Case("tuning records that are damaged", weft.RecordsError, opening(damaged_records)),
    Case("outputs larger than the memory", weft.DeviceError, outer_product),
    Case("operands of two types", TypeMismatch, lambda _: Var("a", f32) + Var("b", i64)),
    Case("the gradient of integers", GradientError, no_derivative),
    Case("a sum in several threads", weft.ScheduleError, parallel_reduction),
    Case("a program that is not finished", weft.LoweringError, still_parallel),
    Case("a function that is there twice", weft.ToolchainError, twice),
    Case("a buffer that is not declared", VerifyError, unknown_buffer),
    Case("text with a slip", TextError, lambda _: parse_program("def f(x: f32[4]):\n    x[0] = y\n")),
    Case(
        "an index beyond the end",
        ExecutionError,
        interpreting(
            "def main(X: f32[n]):\n    for i in range(0, n):\n        X[i] = X[i + 1]\n", np.zeros(4, np.float32)
        ),
    ),
    Case(
        "an index outside of what it chooses from",
        weft.RuntimeFailure,
        lambda _: weft.compile(INDEXED)(*WRONG_INDEX),
    ),
    Case(
        "a value that breaks what the model assumes",
        weft.RuntimeFailure,
        interpreting('def main(n: i64):\n    check(n < 3, "index {0} is not below {1}", n, 3)\n', 7),
    ),
    Case("no barrier", RaceError, lambda _: launch(REVERSED.replace('call("weft.barrier")\n', ""))),
    Case("a barrier for some", DivergenceError, lambda _: launch('if t < 40:\n    call("weft.barrier")\n')),
)
