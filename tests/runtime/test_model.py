"""Models: arrays in and out, contexts, and every message that a wrong call can meet."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from tests.runtime.conftest import FlatImage

from weft.native import _rt
from weft.runtime import Model, Package, TensorSpec
from weft.support.dtypes import DType, bf16, f16, f32, i32, i64
from weft.support.errors import DeviceError, InputError, RuntimeFailure

WEIGHTS = np.array([1.0, 2.0, -3.0, 0.5], np.float32)
AFFINE_ASSERTS = (
    "dimension 1 of x is {0}, not 4",
    "{0} rows are more than this model was made for",
    "row {0} is not a number",
)


def package(flat: FlatImage, name: str, inputs: list[TensorSpec], outputs: list[TensorSpec], **more: object) -> Package:
    entries = (flat.symbols[f"{name}_plan"], flat.symbols[f"{name}_main"])
    fields = {"constants": b"", "readonly": flat.readonly, **more}
    return Package(flat.blob, *entries, inputs=tuple(inputs), outputs=tuple(outputs), **fields)  # type: ignore[arg-type]


def affine(flat: FlatImage, threads: int | None = None) -> Model:
    inputs = [TensorSpec("x", f32, ("N", 4))]
    outputs = [TensorSpec("y", f32, ("N", 4)), TensorSpec("total", f32, ())]
    constants = [(64, WEIGHTS)]
    return Model(
        package(flat, "affine", inputs, outputs, constants=constants, asserts=dict(enumerate(AFFINE_ASSERTS))),
        threads=threads,
    )


def copy2(flat: FlatImage, dtype: DType) -> Model:
    return Model(package(flat, "copy2", [TensorSpec("x", dtype, ("N",))], [TensorSpec("y", dtype, ("N",))]))


def add(flat: FlatImage) -> Model:
    inputs = [TensorSpec("a", f32, ("N",)), TensorSpec("b", f32, ("N",))]
    return Model(package(flat, "add", inputs, [TensorSpec("sum", f32, ("N",))]))


def rows(n: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.random.default_rng(n).standard_normal((n, 4), np.float32)


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_several_outputs_are_a_tuple_in_order(flat: FlatImage, n: int) -> None:
    y, total = affine(flat)(rows(n))
    np.testing.assert_array_equal(y, rows(n) * WEIGHTS)
    np.testing.assert_allclose(total, (rows(n) * WEIGHTS).sum(), rtol=1e-4, atol=1e-4)
    assert (y.dtype, y.shape, total.shape) == (np.float32, (n, 4), ())


def test_one_output_is_an_array(flat: FlatImage) -> None:
    a, b = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
    result = add(flat)(a, b)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, a + b)


def test_inputs_in_order_by_name_or_mixed(flat: FlatImage) -> None:
    a, b = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
    model = add(flat)
    for result in (model(a, b), model(b=b, a=a), model(a, b=b), model.run([a, b])[0]):
        np.testing.assert_array_equal(result, a + b)


def test_results_do_not_depend_on_threads(flat: FlatImage) -> None:
    one, all_of_them = affine(flat, threads=1)(rows(5000)), affine(flat)(rows(5000))
    for a, b in zip(one, all_of_them, strict=True):
        assert a.tobytes() == b.tobytes()


def test_constants_as_parts_a_buffer_or_a_block(flat: FlatImage) -> None:
    whole = np.zeros(20, np.float32)
    whole[16:] = WEIGHTS
    block = _rt.Block(80)
    np.frombuffer(memoryview(block), np.float32)[:] = whole
    specs = ([(f32.code, 2)], [(f32.code, 2), (f32.code, 0)])
    entries = (flat.symbols["affine_plan"], flat.symbols["affine_main"])
    parts: list[tuple[int, _rt.Buffer]] = [(64, WEIGHTS), (0, np.zeros(1))]
    for constants in (parts, whole, block):
        y, _ = _rt.Model(flat.blob, *entries, constants, *specs).run([rows(3)])
        np.testing.assert_array_equal(y, rows(3) * WEIGHTS)


@pytest.mark.parametrize("offset", [-64, 4])
def test_misplaced_constants_are_refused(flat: FlatImage, offset: int) -> None:
    with pytest.raises(ValueError, match="multiple of 64"):
        _rt.Model(flat.blob, 0, 0, [(offset, WEIGHTS)], [], [])


def test_overlapping_constants_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        _rt.pack([(64, b"1"), (0, bytes(65))])


def test_gaps_between_constants_are_zero() -> None:
    packed = bytes(memoryview(_rt.pack([(128, b"b"), (0, b"a")])))
    assert packed == b"a" + bytes(127) + b"b"


def test_unknown_dtype_code_is_refused(flat: FlatImage) -> None:
    for code in (-1, 99):
        with pytest.raises(ValueError, match="no such dtype code"):
            _rt.Model(flat.blob, 0, 0, b"", [(code, 1)], [])


def test_outputs_are_aligned_writable_and_nobody_elses(flat: FlatImage) -> None:
    model = affine(flat)
    x = rows(100)
    first, again = model(x)[0], model(x)[0]
    assert first.ctypes.data % 64 == again.ctypes.data % 64 == 0
    assert not np.shares_memory(first, again)
    kept = first.copy()
    again[:] = 0
    model(-x)
    np.testing.assert_array_equal(first, kept)


def test_outputs_outlive_their_model(flat: FlatImage) -> None:
    model = affine(flat)
    y = model(rows(50_000))[0]
    del model
    gc.collect()
    np.testing.assert_array_equal(y, rows(50_000) * WEIGHTS)


def test_calls_of_growing_and_shrinking_size_share_contexts(flat: FlatImage) -> None:
    model = affine(flat)
    for n in (10, 100_000, 1, 200_000, 3):
        np.testing.assert_array_equal(model(rows(n))[0], rows(n) * WEIGHTS)


def test_concurrent_calls_of_one_model(flat: FlatImage) -> None:
    model = affine(flat)
    sizes = [1 + 37 * i % 3000 for i in range(200)]
    with ThreadPoolExecutor(6) as pool:
        for n, (y, _) in zip(sizes, pool.map(lambda n: model(rows(n)), sizes), strict=True):
            np.testing.assert_array_equal(y, rows(n) * WEIGHTS)


def test_other_threads_run_during_a_call(flat: FlatImage) -> None:
    """The model waits for this thread to set its input, which needs the interpreter lock."""
    model = Model(package(flat, "wait", [TensorSpec("flag", i32, ())], [TensorSpec("seen", i32, ())]))
    flag = np.zeros((), np.int32)
    seen: list[object] = []
    caller = threading.Thread(target=lambda: seen.append(model(flag)))
    caller.start()
    flag[...] = 1
    caller.join()
    assert seen == [1]


@pytest.mark.parametrize("dtype", [bf16, f16])
def test_half_precision_goes_in_and_out(flat: FlatImage, dtype: DType) -> None:
    x = np.array([1.5, -2.0, np.inf], dtype.numpy)
    y = copy2(flat, dtype)(x)
    assert isinstance(y, np.ndarray)
    assert y.dtype == dtype.numpy
    assert y.tobytes() == x.tobytes()


def test_strided_inputs_are_copied(flat: FlatImage) -> None:
    wide = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    for x in (wide[::2, ::2], wide[::-1, 4:], np.asfortranarray(wide[:, :4])):
        np.testing.assert_array_equal(affine(flat)(x)[0], x * WEIGHTS)
    reversed_halves = np.arange(5).astype(ml_dtypes.bfloat16)[::-1]
    np.testing.assert_array_equal(copy2(flat, bf16)(reversed_halves), reversed_halves)


def test_read_only_inputs_are_taken(flat: FlatImage) -> None:
    x = rows(3)
    x.flags.writeable = False
    np.testing.assert_array_equal(affine(flat)(x)[0], x * WEIGHTS)


class Exporter:
    """An array of some other library: all it has is DLPack."""

    def __init__(self, array: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> None:
        self.array = array

    def __dlpack__(self) -> object:
        return self.array.__dlpack__()


def test_inputs_come_through_dlpack(flat: FlatImage) -> None:
    wide = np.random.default_rng(1).standard_normal((6, 8)).astype(np.float32)
    for x in (rows(3), rows(0), wide[::2, 1:5], wide.T[:, 2:]):
        np.testing.assert_array_equal(affine(flat)(Exporter(x))[0], x * WEIGHTS)


def test_dlpack_shares_memory() -> None:
    x = rows(4)
    view = _rt.from_dlpack(x.__dlpack__())
    x[2, 3] = 5
    assert view[2, 3] == 5
    assert not view.flags.writeable


def test_outputs_go_through_dlpack(flat: FlatImage) -> None:
    y = affine(flat)(rows(3))[0]
    again = np.from_dlpack(y)
    assert np.shares_memory(y, again)
    np.testing.assert_array_equal(again, rows(3) * WEIGHTS)


def test_torch_tensors_both_ways(flat: FlatImage) -> None:
    torch = pytest.importorskip("torch")
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    y = affine(flat)(x)[0]
    assert torch.equal(torch.from_dlpack(y), x * torch.from_numpy(WEIGHTS))
    halves = torch.tensor([1.0, -2.5], dtype=torch.bfloat16)
    np.testing.assert_array_equal(copy2(flat, bf16)(halves), np.array([1.0, -2.5], ml_dtypes.bfloat16))
    with pytest.raises(InputError, match=r"give x\.detach\(\)"):
        affine(flat)(x.requires_grad_())


def message(model: Model, *args: object, **named: object) -> str:
    with pytest.raises(InputError) as caught:
        model(*args, **named)
    return str(caught.value)


def test_message_for_a_missing_input(flat: FlatImage) -> None:
    assert message(add(flat)) == "missing inputs: a, b\n  hint: the model takes (a: f32[N], b: f32[N])"


def test_message_for_too_many_inputs(flat: FlatImage) -> None:
    x = np.zeros(2, np.float32)
    assert message(add(flat), x, x, x) == (
        "3 inputs were given, and there are only 2\n  hint: the model takes (a: f32[N], b: f32[N])"
    )


def test_message_for_an_unknown_name(flat: FlatImage) -> None:
    x = np.zeros(2, np.float32)
    assert message(add(flat), x, c=x) == "there is no input 'c'\n  hint: the model takes (a: f32[N], b: f32[N])"


def test_message_for_an_input_given_twice(flat: FlatImage) -> None:
    x = np.zeros(2, np.float32)
    assert message(add(flat), x, a=x) == (
        "input 'a' was given twice, in order and by name\n  hint: the model takes (a: f32[N], b: f32[N])"
    )


def test_message_for_a_wrong_dtype(flat: FlatImage) -> None:
    assert message(affine(flat), np.zeros((3, 4))) == (
        "input 'x' has dtype float64, and the model takes x: f32[N, 4]\n"
        "  hint: convert it yourself, so that nothing is lost unseen: x.astype('float32')"
    )


def test_foreign_byte_order_is_a_wrong_dtype(flat: FlatImage) -> None:
    assert message(affine(flat), np.zeros((3, 4), ">f4")).startswith("input 'x' has dtype >f4, and the model takes x")


def test_bits_are_no_bfloat16(flat: FlatImage) -> None:
    with pytest.raises(InputError, match="has dtype uint16, and the model takes x: bf16"):
        copy2(flat, bf16)(np.zeros(3, np.uint16))


def test_message_for_a_wrong_rank(flat: FlatImage) -> None:
    assert message(affine(flat), np.zeros((2, 3, 4), np.float32)) == (
        "input 'x' has 3 dimensions (2, 3, 4), and the model takes x: f32[N, 4]\n  hint: reshape it to 2 dimensions"
    )


def test_message_for_a_wrong_size(flat: FlatImage) -> None:
    assert message(affine(flat), np.zeros((3, 5), np.float32)) == (
        "input 'x' has shape (3, 5): dimension 1 is 5, not 4\n  hint: the model takes x: f32[N, 4]"
    )


def test_message_for_sizes_that_disagree(flat: FlatImage) -> None:
    assert message(add(flat), np.zeros(3, np.float32), np.zeros(2, np.float32)) == (
        "input 'b' has shape (2,): dimension 0 is 2, not 3 (N is 3 by dimension 0 of 'a')\n"
        "  hint: the model takes b: f32[N]"
    )


def test_message_for_what_is_no_array(flat: FlatImage) -> None:
    assert message(affine(flat), [[1.0, 2.0, 3.0, 4.0]]) == (
        "input 'x' is a list, not an array\n  hint: give x: f32[N, 4] as a NumPy array, a torch tensor or any array "
        "with DLPack, such as np.asarray(value, dtype=np.float32)"
    )


def test_message_of_a_check_in_the_plan(flat: FlatImage) -> None:
    assert message(affine(flat), np.zeros((1_000_001, 4), np.float32)) == (
        "1000001 rows are more than this model was made for\n  hint: the model takes (x: f32[N, 4])"
    )


def test_message_of_a_check_during_the_run(flat: FlatImage) -> None:
    x = rows(5)
    x[3, 0] = np.nan
    with pytest.raises(RuntimeFailure) as caught:
        affine(flat)(x)
    assert str(caught.value) == (
        "the model stopped while it ran: row 3 is not a number\n  hint: check the values of its inputs"
    )


@pytest.mark.parametrize("wish", [3, 1 << 59])
def test_message_for_no_memory(flat: FlatImage, wish: int) -> None:
    model = Model(package(flat, "greedy", [TensorSpec("n", i64, ())], [TensorSpec("y", f32, ("N",))]))
    with pytest.raises(DeviceError, match="no memory left"):
        model(np.array(wish))


@pytest.mark.parametrize("wish", [-2, 1 << 62])
def test_an_impossible_output_is_the_compilers_fault(flat: FlatImage, wish: int) -> None:
    model = _rt.Model(
        flat.blob, flat.symbols["greedy_plan"], flat.symbols["greedy_main"], b"", [(i64.code, 0)], [(f32.code, 1)]
    )
    with pytest.raises(ValueError, match="planned shape is impossible"):
        model.run([np.array(wish)])


def test_repr_is_the_signature(flat: FlatImage) -> None:
    assert repr(affine(flat)) == "<weft.Model (x: f32[N, 4]) -> (y: f32[N, 4], total: f32[])>"
