"""Every operator of the table, each compared with PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.cases import BATCH, CASES, DECOMPOSED, SYMBOLIC  # noqa: E402
from tests.frontends.torch.cases.random_draws import MOMENTS  # noqa: E402
from tests.frontends.torch.modules import Module, check, exported, numbers  # noqa: E402

import weft  # noqa: E402
from weft.driver.checking.reference import run_graph  # noqa: E402
from weft.frontends.torch.call import Call  # noqa: E402
from weft.frontends.torch.complex_numbers import COMPLEX  # noqa: E402
from weft.frontends.torch.decompose import decomposed, name_of  # noqa: E402
from weft.frontends.torch.importer import from_exported_program  # noqa: E402
from weft.frontends.torch.registry import TABLE  # noqa: E402
from weft.graph import Graph, Value  # noqa: E402
from weft.graph.builder import CompileTimeConstant, PartialEvaluator  # noqa: E402
from weft.support.dtypes import f32, i32  # noqa: E402

F = torch.nn.functional
SEEN: set[str] = set()


def note(program: Any) -> Any:
    SEEN.update(name_of(n.target) for n in program.graph.nodes if n.op == "call_function")
    return program


@pytest.mark.sampled(18)
@pytest.mark.filterwarnings("ignore:index_reduce:UserWarning")
@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter:UserWarning")
@pytest.mark.parametrize("name", [*CASES, *SYMBOLIC])
def test_like_pytorch(name: str) -> None:
    function, inputs = CASES[name] if name in CASES else SYMBOLIC[name]
    module = Module(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch's own
        program = note(exported(module, inputs, None if name in CASES else ((BATCH,),)))
        programs = [program, note(program.run_decompositions())] if name in DECOMPOSED else [program]
    for p in programs:
        check(p, module, inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_rounded_once(dtype: Any) -> None:
    x, y = numbers(3, 40, dtype=dtype), numbers(3, 40, dtype=dtype, seed=1)
    module = Module(
        lambda x, y: (F.silu(x), torch.add(x, y, alpha=3), F.rms_norm(x, (40,), y[0]), x.softmax(-1), x * 2)
    )
    wide = module(x.float(), y.float())
    graph = from_exported_program(exported(module, [x, y]))
    assert {v.dtype.name for v in graph.outputs} == {
        str(dtype).replace("torch.float16", "f16").replace("torch.bfloat16", "bf16")
    }
    unit = 2**-8 if dtype is torch.bfloat16 else 2**-11
    check(
        exported(module, [x, y]),
        Module(lambda x, y: tuple([t.to(dtype) for t in wide])),
        [x, y],
        rtol=2.01 * unit,
        atol=1e-6,
    )


NUMBERS: list[tuple[str, list[Any], Any]] = [
    ("_operator.truediv", [7, 2], 3.5),
    ("_operator.pow", [7, 2], 49),
    ("_operator.neg", [7], -7),
    ("math.ceil", [2.5], 3),
    ("math.floor", [2.5], 2),
    ("math.trunc", [-2.5], -2),
    ("torch.sym_float", [2], 2.0),
    ("torch.sym_int", [2.0], 2),
    ("torch._sym_sqrt", [4], 2.0),
    ("torch.sym_sum", [[2, 3, 4]], 9),
    ("torch.sym_max", [2, 3], 3),
    ("torch.sym_min", [2, 3], 2),
]
CHECKS = (
    *(f"_operator.{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge", "and_", "or_", "not_")),
    *("torch.sym_not", "aten._assert_tensor_metadata.default", "aten._assert_async.msg", "aten._assert_scalar.default"),
    *("aten.sym_constrain_range.default", "aten.sym_constrain_range_for_size.default"),
    "aten.sym_storage_offset.default",
)


@pytest.mark.parametrize(("name", "given", "result"), NUMBERS, ids=lambda v: v if isinstance(v, str) else "")
def test_functions_of_numbers(name: str, given: list[Any], result: Any) -> None:
    arguments = dict(zip(("self", "other"), given, strict=False))
    made = TABLE[name](Call(PartialEvaluator(Graph()), name, arguments, None, None))
    assert isinstance(made, CompileTimeConstant)
    assert made.array.item() == result


GROUPED = ("transformers.grouped_mm_fallback.default", "aten._grouped_mm.default")
"""Operators of another package, and of processors' own layouts."""


@pytest.mark.parametrize("name", GROUPED)
def test_groups_of_rows(name: str) -> None:
    graph = Graph()
    x, w = graph.input("x", (8, 4), f32), graph.input("w", (3, 4, 5), f32)
    ends = graph.input("ends", (3,), i32)
    arguments = {"input": x, "self": x, "weight": w, "mat2": w, "offs": ends}
    made = TABLE[name](Call(PartialEvaluator(graph), name, arguments, f32, None))
    assert isinstance(made, Value)
    graph.output(made, "made")
    given = {"x": numbers(8, 4).numpy(), "w": numbers(3, 4, 5, seed=1).numpy(), "ends": np.array([2, 2, 8], np.int32)}
    wanted = np.concatenate([given["x"][:2] @ given["w"][0], given["x"][2:] @ given["w"][2]])
    np.testing.assert_allclose(run_graph(graph, given)[0], wanted, rtol=1e-5, atol=1e-6)


def test_complex_operators_that_weft_lacks() -> None:
    program = exported(Module(lambda x: torch.view_as_real(torch.tan(torch.view_as_complex(x)))), [numbers(3, 2)])
    with pytest.raises(weft.ModelError) as told:
        from_exported_program(program)
    assert told.value.message == "aten.tan.default of complex numbers is not supported"
    assert told.value.hint == "compute with the real and the imaginary part in the module"


@pytest.mark.slow  # with the cases that are left out by default
def test_every_operator_is_tried() -> None:
    """The cases before have seen every row of the table; run alone, they are exported for it."""
    SEEN.update(CHECKS, GROUPED, [name for name, *_ in NUMBERS])
    if not SEEN.issuperset({*TABLE, *COMPLEX}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, (function, inputs) in {**CASES, **SYMBOLIC}.items():
                program = note(exported(Module(function), inputs, None if name in CASES else ((BATCH,),)))
                if name in DECOMPOSED:
                    note(program.run_decompositions())
        for function, x, *_ in MOMENTS.values():
            program = note(exported(Module(function), [x]))
            note(decomposed(program))
    unseen = " ".join(sorted({*TABLE, *COMPLEX} - SEEN))
    assert unseen == ""
