"""Measures the alternatives of the decisions in this folder: `python docs/design/measure.py 4` prints the figures of 0004.

Times are processor time of one thread (0032 and 0083: of the clock; 0047: of all), the best of several runs.
"""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from measure_compiling import compiling, processes, second_process
from measure_operators import algorithms, regions
from measure_products import parts
from timing import best

import weft
from weft.cli.demo_models import resnet18
from weft.cli.onnx_builder import GraphBuilder, gemm
from weft.codegen.interp import run
from weft.codegen.launch import write_launch
from weft.codegen.llvm.expressions import shuffles
from weft.codegen.llvm.ir_module import write_module
from weft.codegen.llvm.memory import addresses
from weft.codegen.llvm.object_code import compile_function_module, compile_module
from weft.codegen.objects import link
from weft.driver.build import Compilation, build
from weft.driver.evaluate import NativeEvaluator
from weft.driver.function import build_function
from weft.driver.host_model import replay_model
from weft.driver.options import CompileOptions
from weft.frontends.onnx.importer import from_onnx
from weft.graph import Graph, fuse, optimize
from weft.graph.builder import Builder, CompileTimeConstant, partial_evaluator
from weft.graph.composites.quantized.quantization import broadcast_to_blocks, dequantize
from weft.ir import Add, Var
from weft.loop import Program, parse_program, print_program
from weft.lower import PASSES, UNROLLED, ProgramPass, lower, run_passes
from weft.native import _rt
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.support.dtypes import SCALARS, f32
from weft.targets import Target, host
from weft.te import compute, placeholder, reduce_axis, sum_, to_program


@dataclass(frozen=True)
class PlainAdd:
    """What an interned node would be otherwise."""

    a: object
    b: object


def build_sums(add: Callable[[Any, Any], object], a: object, others: Sequence[object]) -> None:
    """Builds the sum of *a* with each of *others*."""
    for v in others:
        add(a, v)


def doubled(add: Callable[[Any, Any], object], e: object, depth: int) -> object:
    """Returns a sum of 2**depth terms, made of *depth* nodes."""
    for _ in range(depth):
        e = add(e, e)
    return e


def interning() -> None:
    """0001: interned nodes against a frozen dataclass."""
    a, b = Var("a"), Var("b")
    kept = Add(a, b)
    assert kept is Add(a, b)
    for name, add in (("interned", Add), ("dataclass", PlainAdd)):
        new = best(partial(build_sums, add, a, [Var("v") for _ in range(100_000)])) * 1e4
        again = best(partial(build_sums, add, a, [b] * 100_000)) * 1e4
        print(f"{name}: a new node {new:.0f} ns, one that exists {again:.0f} ns")
    left, right = doubled(PlainAdd, a, 20), doubled(PlainAdd, a, 20)
    print(
        f"comparing equal sums of 20 nodes that share operands: dataclass {best(lambda: left == right, 1) * 1e3:.0f} ms"
    )
    one, same = doubled(Add, a, 20), doubled(Add, a, 20)
    print(f"interned {best(lambda: [one is same for _ in range(100_000)]) * 1e4:.0f} ns")


def text() -> None:
    """0002: where the time goes when a program's text is read."""
    programs = [k.flat for k in model().kernels.values()]
    lines = sum(t.count("\n") for t in programs)
    whole, syntax = best(lambda: [*map(parse_program, programs)]), best(lambda: [ast.parse(t) for t in programs])
    parsed = [*map(parse_program, programs)]
    print(
        f"{len(programs)} programs, {lines} lines: read in {whole * 1e3:.0f} ms, of which Python's parser {syntax * 1e3:.0f} ms"
    )
    print(f"written in {best(lambda: [*map(print_program, parsed)]) * 1e3:.0f} ms")


def schedules() -> None:
    """0003: what checked rewrites cost beside the rest of the compilation."""
    programs = kernels_of_resnet()
    target = host()
    scheduled = [schedule_program(p, target) for p in programs]
    flat = [lower(s.program, target) for s in scheduled]
    n, steps = len(programs), sum(len(str(s.trace).splitlines()) for s in scheduled)
    print(f"{n} kernels, {steps} steps")
    for name, work in (
        ("schedule", lambda: [schedule_program(p, target) for p in programs]),
        ("lower", lambda: [lower(s.program, target) for s in scheduled]),
        ("emit and LLVM", lambda: [compile_function_module(p, target) for p in flat]),
    ):
        print(f"{name}: {best(work, 3) * 1e3 / n:.1f} ms a kernel")


def lower_by(passes: Sequence[ProgramPass], programs: Sequence[Program], target: Target) -> list[Program]:
    """Returns the programs after *passes*."""
    return [run_passes(passes, p, target) for p in programs]


def emit_all(programs: Sequence[Program], target: Target) -> None:
    """Compiles flat programs."""
    for p in programs:
        compile_function_module(p, target)


def tiles() -> None:
    """0004: register tiles as loops to the end, or unrolled before the passes."""
    target = host()
    programs = [schedule_program(p, target).program for p in kernels_of_resnet()]
    at = [p.name for p in PASSES].index("flatten_buffers") + 1
    early = (*PASSES[:at], *UNROLLED, *PASSES[at:])
    for name, passes in (("loops to the end", PASSES), ("unrolled early", early)):
        lower_all = partial(lower_by, passes, programs, target)
        flat = lower_all()
        python, llvm = best(lower_all, 2), best(partial(emit_all, flat, target), 2)
        n, size = len(programs), sum(len(print_program(p)) for p in flat)
        print(
            f"{name}: {size // n} bytes of text a kernel, lowering {python * 1e3 / n:.0f} ms, "
            f"emitting and LLVM {llvm * 1e3 / n:.0f} ms"
        )


def loading() -> None:
    """0005: what a process needs to have a model's code in memory, by Weft's image and by LLVM's loader."""
    with tempfile.TemporaryDirectory() as folder:
        made = model()
        objects = [k.module for k in made.kernels.values()]
        weft.Model(made.package).save(f"{folder}/model.weft")
        for n, o in enumerate(objects):
            Path(f"{folder}/{n}.o").write_bytes(o.data)
        ours = f"import weft; m = weft.load({folder!r} + '/model.weft')"
        theirs = (
            "import pathlib, llvmlite.binding as llvm; llvm.initialize_native_target(); llvm.initialize_native_asmprinter();"
            "t = llvm.Target.from_default_triple().create_target_machine(jit=True); e = llvm.create_lljit_compiler(t);"
            "add = lambda p: llvm.JITLibraryBuilder().add_object_img(p.read_bytes()).link(e, p.name);"  # names may be the same
            f"libraries = [add(p) for p in pathlib.Path({folder!r}).glob('*.o')]"
        )
        empty = in_process("import numpy")
        for name, code in (("image", ours), ("LLVM's loader", theirs)):
            seconds, megabytes = in_process("import numpy;" + code)
            print(
                f"{name}: {(seconds - empty[0]) * 1e3:.0f} ms and {megabytes - empty[1]:.0f} MB more than NumPy alone"
            )
    print(f"linking {len(objects)} kernels: {best(lambda: link(objects)) * 1e3:.1f} ms")
    for package in ("llvmlite", "weft.native"):
        (path,) = importlib.import_module(package).__path__[:1]
        size = max(f.stat().st_size for f in Path(path).rglob("*.so"))
        print(f"shared library of {package}: {size / 1e6:.1f} MB")


def in_process(code: str) -> tuple[float, float]:
    """Returns the processor time and the peak memory of a process, in seconds and MB: the best of five."""
    tail = (
        "\nimport resource; u = resource.getrusage(resource.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"
        "\nprint([int(w.split()[1]) / 1024 for w in open('/proc/self/status') if w.startswith('VmHWM')][0])"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code + tail], capture_output=True, text=True, check=True)
        for _ in range(5)
    ]
    figures = [[float(f) for f in r.stdout.split()] for r in runs]
    return min(f[0] for f in figures), min(f[1] for f in figures)


def constants() -> None:
    """0006: packing a weight by generated code, by the loop interpreter, and by NumPy."""
    x = np.random.default_rng(0).standard_normal((512, 512, 3, 3)).astype(np.float32)
    op, attributes = OPERATORS["pack_conv_weight"], {"in_block": 16, "out_block": 16}
    cold = best(lambda: NativeEvaluator(host()).evaluate(op, [x], attributes), 3)
    evaluator = NativeEvaluator(host())
    warm = best(lambda: evaluator.evaluate(op, [x], attributes))
    given = placeholder(x.shape, f32, "x")
    (made,) = op([given], attributes)
    program, out = to_program([given], [made]), np.empty((32, 32, 3, 3, 16, 16), np.float32)
    interpreted = best(lambda: run(program, [x, out]), 1)
    np.testing.assert_array_equal(evaluator.evaluate(op, [x], attributes)[0], out)
    by_hand = best(lambda: np.ascontiguousarray(x.reshape(32, 16, 32, 16, 3, 3).transpose(0, 2, 4, 5, 3, 1)))
    print(f"generated code {warm * 1e3:.1f} ms ({cold * 1e3:.0f} ms with compiling it)")
    print(f"interpreter {interpreted * 1e3:.0f} ms, NumPy by hand {by_hand * 1e3:.1f} ms")


def layouts() -> None:
    """0007: ResNet-18 with channels in blocks throughout, in blocks inside each convolution only, and not at all."""
    x = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    graph = from_onnx(resnet18())
    for level, name in ((3, "in blocks throughout"), (2, "as the model stores them")):
        made = weft.Model(weft.build(graph, options=CompileOptions(opt_level=level)).package, threads=1)
        print(f"{name}: {best(partial(made, x), 15) * 1e3:.1f} ms")
    results = [n.output.static_shape or () for n in graph.nodes if n.op == "conv2d"]
    more = sum(moving_time(shape) for shape in results)
    print(f"taking the results of {len(results)} convolutions out of blocks and back: {more * 1e3:.1f} ms")


def moving_time(shape: tuple[int, ...]) -> float:
    """Returns the seconds that it takes to pack a tensor's channels into blocks, and to unpack them."""
    block = host().lanes(32)
    plain = placeholder(shape, f32, "plain")
    (packed,) = OPERATORS["pack_channels"]([plain], {"block": block})
    blocked = placeholder(packed.shape, f32, "blocked")
    (unpacked,) = OPERATORS["unpack_channels"]([blocked], {"channels": shape[1]})
    arrays = [np.ones(shape, np.float32), np.ones([shape[0], shape[1] // block, *shape[2:], block], np.float32)]
    taken = 0.0
    for given, made, order in ((plain, packed, arrays), (blocked, unpacked, arrays[::-1])):
        function = build_function(schedule_program(to_program([given], [made]), host()).program)
        taken += function.time(*order, repeats=30)
    return taken


def oracle() -> None:
    """0008: the interpreter's speed, and faults that comparing results misses."""
    a, b, k = placeholder((32, 32), f32, "A"), placeholder((32, 32), f32, "B"), reduce_axis(32, "k")
    program = to_program([a, b], [compute((32, 32), lambda i, j: sum_(a[i, k] * b[k, j], [k]), "C")])
    arrays = [np.ones((32, 32), np.float32) for _ in range(3)]
    print(f"{best(lambda: run(program, arrays), 3) / 32**3 * 1e6:.2f} us an iteration")
    outside = parse_program(
        "def f(A: f32[8], C: f32[8]):\n    for i in range(0, 8):\n        C[i] = A[i] + A[i + 1] * 0.0\n"
    )
    x, y = np.arange(8, dtype=np.float32), np.empty(8, np.float32)
    image = link([compile_function_module(outside, host())])
    _rt.call(image.code, image.symbols["f"], [x, y])
    print("compiled, a read past the end gives", "the right result" if np.array_equal(x, y) else "a wrong result")
    try:
        run(outside, [x, y])
    except weft.WeftError as error:
        print("interpreted:", str(error).splitlines()[0])


def model() -> Compilation:
    """Compiles the digits model."""
    return weft.build("examples/digits/digits.onnx")


def kernels_of_resnet() -> list[Program]:
    """Returns the distinct kernels of ResNet-18, not yet scheduled."""
    target = host()
    groups = {g.key: g for g in fuse(optimize(from_onnx(resnet18()), target, NativeEvaluator(target))).groups}
    return [to_program(*g.tensors(), sizes=g.sizes) for g in groups.values()]


def artifacts() -> None:
    """0031: loading ResNet-18's file, mapped or copied, its weights summed or not."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "resnet18.weft")
        weft.Model(weft.build(from_onnx(resnet18())).package).save(path)
        print(f"{path.stat().st_size / 1e6:.0f} MB")
        for copy in (False, True):
            for verify in (True, False):
                seconds = best(lambda: weft.load(path, threads=1, copy=copy, verify=verify), 15)  # noqa: B023
                print(
                    f"{'copied' if copy else 'mapped'}, {'summed' if verify else 'not summed'}: {seconds * 1e3:.1f} ms"
                )


def reuse() -> None:
    """0035: loads of ResNet-18's kernels, each value written once or again wherever it is loaded."""
    target = host()
    flat = [lower(schedule_program(p, target).program, target) for p in kernels_of_resnet()]
    for name, load in (
        ("once", addresses.remembered_load),
        ("again and again", lambda f, memory, text: f.build.here(text)),
    ):
        with patch.object(addresses, "remembered_load", load):
            modules = [write_module(p, target) for p in flat]
            llvm = best(lambda: [compile_module(m, target) for m in modules], 3)  # noqa: B023
            code = sum(len(compile_module(m, target).data) for m in modules)
        n, size = len(flat), sum(len(m.text) for m in modules)
        print(
            f"{name}: {size / n / 1e3:.0f} kB of text a kernel, LLVM {llvm * 1e3 / n:.0f} ms, {code / n:.0f} bytes of code"
        )


def fences() -> None:
    """0040: LLVM's time for the transposition of 128 x 784 numbers, its networks of shuffles fenced or not."""
    target = host()
    x = placeholder((128, 784), f32, "x")
    program = to_program([x], [compute((784, 128), lambda i, j: x[j, i], "y")], "transposition")
    flat = lower(schedule_program(program, target).program, target)
    for name, levels in (("fenced", shuffles.MERGED_SHUFFLES), ("not fenced", 99)):
        with patch.object(shuffles, "MERGED_SHUFFLES", levels):
            module = write_module(flat, target)
        llvm = best(lambda: compile_module(module, target), 15)  # noqa: B023
        print(f"{name}: LLVM {llvm * 1e3:.1f} ms, {len(compile_module(module, target).data)} bytes")


def replaying() -> None:
    """0041: host programs as bytes, and calls that replay them beside calls of the compiled form, in turns."""
    for layers in (1, 4, 16):
        g = GraphBuilder("layers", 0)
        x = g.input("x", (1, 32))
        for _ in range(layers):
            x = g.op("Relu", gemm(g, x, (32, 32)))
        g.output(x, "y")
        made = weft.build(g.model())
        given = [np.ones((1, 32), np.float32)]
        code = write_launch(made.host, 1, 1)
        forms = [weft.Model(package, threads=1) for package in (made.package, replay_model(made))]
        turns = [[best(lambda m=m: [m.run(given) for _ in range(500)], 1) / 500 for m in forms] for _ in range(40)]  # type: ignore[misc] # noqa: B023
        compiled, replayed = [float(np.median(of_one)) * 1e6 for of_one in zip(*turns, strict=True)]
        print(
            f"{len(made.fused.calls)} kernels: {len(code.data)} bytes, a call {compiled:.2f} us compiled, {replayed:.2f} replayed"
        )


def packing() -> None:
    """0042: a product by a matrix of int4 held packed and not, in turns, and one by int8."""
    rng = np.random.default_rng(0)
    made = {}
    for name, dtype, packs in (
        ("int8", "i8", False),
        ("int4, a byte each", "int4", False),
        ("int4, packed", "int4", True),
    ):
        g = Graph()
        b = Builder(partial_evaluator.PartialEvaluator(g), "product")
        weight = CompileTimeConstant(rng.integers(-8, 8, (1024, 1024)).astype(SCALARS[dtype].numpy))
        scale = CompileTimeConstant(rng.random((32, 1024)).astype(np.float32))
        x = g.input("x", (1, 1024), f32)
        with patch.object(partial_evaluator, "is_packable", lambda k, packs=packs: packs and k.dtype.is_storage):
            wide = dequantize(b, weight, broadcast_to_blocks(b, scale, weight, 0), None, f32)
            g.output(b.evaluator.value(b.add("matmul", x, wide)), "y")
        made[name] = weft.Model(build(g, "cpu", CompileOptions(), None, None).package, threads=1)
    given = [rng.standard_normal((1, 1024)).astype(np.float32)]
    turns = [[best(lambda m=m: m.run(given), 20) for m in made.values()] for _ in range(20)]  # type: ignore[misc]
    for (name, m), times in zip(made.items(), zip(*turns, strict=True), strict=True):
        held = memoryview(m.package.constants).nbytes
        print(f"{name}: {held} bytes of weights, {float(np.median(times)) * 1e6:.0f} us")


DECISIONS = {
    1: interning,
    2: text,
    3: schedules,
    4: tiles,
    5: loading,
    6: constants,
    7: layouts,
    8: oracle,
    31: artifacts,
    32: compiling,
    35: reuse,
    40: fences,
    41: replaying,
    42: packing,
    43: algorithms,
    46: regions,
    47: second_process,
    83: processes,
    84: parts,
}

if __name__ == "__main__":
    for number in map(int, sys.argv[1:] or DECISIONS):
        print(f"# {number:04}")
        DECISIONS[number]()
