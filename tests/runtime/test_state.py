"""State: values that live across calls, in one `State` for each conversation."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator
from tests.decoders import grouped_decoder, growing_decoder

import weft
from weft.cli.onnx_builder import GraphBuilder

Tokens = list[int]
PAIRS = {"past_*": "present_*"}
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
ROOM = 48


@pytest.fixture(scope="module")
def decoder() -> weft.Model:
    """A decoder whose cache is a state."""
    made = growing_decoder().SerializeToString()
    return weft.compile(made, state=PAIRS, capacity={"past_*": ROOM}, threads=1)


def greedy(decoder: weft.Model, state: Any, tokens: Tokens, count: int) -> tuple[Tokens, list[npt.NDArray[Any]]]:
    """Returns the tokens that follow, and the logits of each."""
    made: Tokens = []
    scores = []
    for _ in range(count):
        (logits,) = decoder.run([np.array([tokens])], state=state)
        scores.append(logits)
        tokens = [int(logits.argmax())]
        made += tokens
    return made, scores


def greedy_from_scratch(model: weft.Model, tokens: Tokens, count: int) -> tuple[Tokens, list[npt.NDArray[Any]]]:
    """Returns the same by a model without state, for which the cache is empty: each call is given all tokens."""
    made: Tokens = []
    scores = []
    empty = np.zeros((1, 2, 0, 16), np.float32)
    for _ in range(count):
        logits = model.run([np.array([[*tokens, *made]]), *[empty] * 4])[-1]
        scores.append(logits)
        made.append(int(logits.argmax()))
    return made, scores


def test_a_decoder_with_state_makes_the_tokens_of_one_without(decoder: weft.Model) -> None:
    reference = weft.compile(growing_decoder().SerializeToString(), shapes={"past": 0}, threads=1)
    tokens, scores = greedy(decoder, decoder.new_state(), PROMPT, 20)
    expected, wanted = greedy_from_scratch(reference, PROMPT, 20)
    assert tokens == expected
    for a, b in zip(scores, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_heads_that_queries_share_are_read_where_they_are() -> None:
    made = grouped_decoder()
    reference = ReferenceEvaluator(made)
    model = weft.compile(made.SerializeToString(), state=PAIRS, capacity={"past_*": 8}, threads=1)
    x, state = np.random.default_rng(0).standard_normal((1, 6, 32)).astype(np.float32), model.new_state()
    for begin, end in ((0, 3), (3, 4), (4, 6)):
        given = {"x": x[:, begin:end], "past_k": state["past_k"], "past_v": state["past_v"]}
        expected, keys, values = map(np.asarray, reference.run(["y", "present_k", "present_v"], given))
        (y,) = model.run([x[:, begin:end]], state=state)
        for found, wanted in ((y, expected), (state["past_k"], keys), (state["past_v"], values)):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_prompt_may_come_token_by_token(decoder: weft.Model) -> None:
    whole, pieces = decoder.new_state(), decoder.new_state()
    expected = decoder.run([np.array([PROMPT])], state=whole)[0]
    for token in PROMPT:
        found = decoder.run([np.array([[token]])], state=pieces)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert pieces.length("past_k0") == whole.length("past_k0") == len(PROMPT)
    for name in whole:
        np.testing.assert_allclose(pieces[name], whole[name], rtol=1e-4, atol=1e-5)


def test_a_copy_goes_on_by_itself_and_a_reset_state_is_as_new(decoder: weft.Model) -> None:
    state = decoder.new_state()
    first, _ = greedy(decoder, state, PROMPT, 3)
    branch = state.copy()
    other, _ = greedy(decoder, branch, [7], 4)
    more, _ = greedy(decoder, state, first[-1:], 4)
    assert branch.length("past_v1") == state.length("past_v1") == len(PROMPT) + 6
    state.reset()
    assert state.length("past_v1") == 0
    assert state["past_v1"].shape == (1, 2, 0, 16)
    assert greedy(decoder, state, PROMPT, 7)[0] == first + more
    assert other != more


def test_states_are_files(decoder: weft.Model, tmp_path: Path) -> None:
    state = decoder.new_state()
    made, _ = greedy(decoder, state, PROMPT, 3)
    state.save(tmp_path / "chat.state")
    again = decoder.load_state(tmp_path / "chat.state")
    assert {name: again.length(name) for name in again} == dict.fromkeys(state, len(PROMPT) + 2)
    assert greedy(decoder, again, made[-1:], 5)[0] == greedy(decoder, state, made[-1:], 5)[0]
    (tmp_path / "no.state").write_bytes(b"nothing")
    with pytest.raises(weft.ArtifactError, match=r"no.state: it is no state"):
        decoder.load_state(tmp_path / "no.state")


def test_a_full_state_says_so_and_stays_as_it_was(decoder: weft.Model) -> None:
    state = decoder.new_state()
    decoder.run([np.zeros((1, ROOM), np.int64)], state=state)
    before = state["past_k1"]
    with pytest.raises(weft.InputError) as refused:
        decoder.run([np.array([[1]])], state=state)
    assert str(refused.value) == (
        "the state past_k0 would be 49 long, and has room for 48: it is full\n"
        "  hint: reset() the state, or compile the model with more capacity"
    )
    np.testing.assert_array_equal(state["past_k1"], before)


def test_a_failed_call_adds_no_rows(decoder: weft.Model) -> None:
    state = decoder.new_state()
    decoder.run([np.array([PROMPT])], state=state)
    with pytest.raises(weft.RuntimeFailure, match="index 99 is outside"):
        decoder.run([np.array([[99]])], state=state)
    assert greedy(decoder, state, [1], 4)[0] == greedy(decoder, _after(decoder, PROMPT), [1], 4)[0]


def _after(decoder: weft.Model, tokens: Tokens) -> Any:
    state = decoder.new_state()
    decoder.run([np.array([tokens])], state=state)
    return state


def test_an_artifact_has_the_states(decoder: weft.Model, tmp_path: Path) -> None:
    decoder.save(tmp_path / "decoder.weft")
    loaded = weft.load(tmp_path / "decoder.weft", threads=1)
    assert [spec.name for spec in loaded.inputs] == ["ids"]
    assert [spec.name for spec in loaded.states] == ["past_k0", "past_v0", "past_k1", "past_v1"]
    assert greedy(loaded, loaded.new_state(), PROMPT, 6)[0] == greedy(decoder, decoder.new_state(), PROMPT, 6)[0]
    assert loaded.package.states == decoder.package.states
    assert loaded.package.features == decoder.package.features


def test_states_of_several_threads_are_apart(decoder: weft.Model) -> None:
    prompts = [PROMPT, PROMPT[::-1]]
    expected = [greedy(decoder, decoder.new_state(), p, 25)[0] for p in prompts]
    found: list[Tokens] = [[], []]

    def run(n: int) -> None:
        found[n] = greedy(decoder, decoder.new_state(), prompts[n], 25)[0]

    threads = [threading.Thread(target=run, args=(n,)) for n in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == expected


def test_calls_need_a_state_of_their_own_model(decoder: weft.Model) -> None:
    with pytest.raises(weft.InputError, match="the call needs a state of this model, for past_k0, past_v0"):
        decoder.run([np.array([[1]])])
    other = weft.compile(running_mean("in place").SerializeToString(), state={"mean": "next_mean"})
    with pytest.raises(weft.InputError, match="the call needs a state of this model"):
        decoder.run([np.array([[1]])], state=other.new_state())


def running_mean(how: str) -> Any:
    """Returns a model that adds a vector to a state, element by element, or through a product that reads all of it."""
    g = GraphBuilder("running_mean", 0)
    x, mean = g.input("x", (4,)), g.input("mean", (4,))
    kept = mean if how == "in place" else g.op("MatMul", mean, g.weight(np.eye(4, dtype=np.float32)[::-1].copy()))
    made = g.op("Add", g.op("Mul", kept, g.scalar(0.5)), x)
    g.output(made, "next_mean")
    g.output(g.op("ReduceSum", made, g.int64s([0]), keepdims=1), "total")
    return g.model()


@pytest.mark.parametrize("how", ["in place", "two buffers"])
def test_a_state_of_one_shape_is_written_in_place_or_to_a_second_buffer(how: str) -> None:
    model = weft.compile(running_mean(how).SerializeToString(), state={"mean": "next_mean"}, threads=1)
    assert [s.in_place for s in model.package.states] == [how == "in place"]
    state, expected = model.new_state(), np.zeros(4, np.float32)
    for k in range(1, 5):
        x = np.array([1, 2, 3, 4], np.float32) * k
        expected = (expected if how == "in place" else expected[::-1]) * np.float32(0.5) + x
        (total,) = model.run([x], state=state)
        np.testing.assert_allclose(state["mean"], expected)
        np.testing.assert_allclose(total, [expected.sum()])
    state["mean"] = np.ones(4, np.float32)
    np.testing.assert_array_equal(state.copy()["mean"], np.ones(4, np.float32))
    with pytest.raises(weft.InputError, match=r"the state mean can't be an array of float64\[4\]"):
        state["mean"] = np.ones(4)


@pytest.mark.parametrize("how", ["in place", "two buffers"])
def test_a_state_begins_with_given_values_and_is_reset_to_them(how: str, tmp_path: Path) -> None:
    model = weft.compile(running_mean(how).SerializeToString(), state={"mean": "next_mean"}, threads=1)
    first = np.array([4, 3, 2, 1], np.float32)
    state, zeros = model.new_state(initial={"mean": first}), np.zeros(4, np.float32)
    begun = first.copy()
    first[:] = 7  # the caller's array is no part of the state
    wanted = (begun if how == "in place" else begun[::-1]) / 2
    copied = state.copy()
    for again in (state, copied):
        for _ in range(2):
            np.testing.assert_array_equal(again["mean"], begun)
            (total,) = model.run([zeros], state=again)
            np.testing.assert_allclose(again["mean"], wanted)
            np.testing.assert_allclose(total, [wanted.sum()])
            again.save(tmp_path / "mean.state")
            np.testing.assert_array_equal(model.load_state(tmp_path / "mean.state")["mean"], again["mean"])
            again.reset()


def test_a_cache_begins_with_given_rows(decoder: weft.Model) -> None:
    state = decoder.new_state()
    made, _ = greedy(decoder, state, PROMPT, 3)
    again = decoder.new_state(initial=dict(state))
    assert greedy(decoder, again, made[-1:], 5)[0] == greedy(decoder, state, made[-1:], 5)[0]
    again.reset()
    assert {again.length(name) for name in again} == {len(PROMPT) + 2}


def test_values_to_begin_with_have_the_name_and_the_type_of_a_state() -> None:
    model = weft.compile(running_mean("in place").SerializeToString(), state={"mean": "next_mean"}, threads=1)
    with pytest.raises(weft.InputError, match="there is no state means"):
        model.new_state(initial={"means": np.zeros(4, np.float32)})
    with pytest.raises(weft.InputError, match=r"the state mean can't be an array of float64\[4\]"):
        model.new_state(initial={"mean": np.zeros(4)})


def test_a_state_that_a_failed_call_has_written_in_place_is_refused_until_it_is_reset() -> None:
    g = GraphBuilder("running_row", 0)
    row, mean = g.input("row", (1,), TensorProto.INT64), g.input("mean", (1, 4))
    table = g.weight(np.arange(8, dtype=np.float32).reshape(2, 4))
    g.output(g.op("Add", g.op("Mul", mean, g.scalar(0.5)), g.op("Gather", table, row)), "next_mean")
    model = weft.compile(g.model().SerializeToString(), state={"mean": "next_mean"}, threads=1)
    assert [s.in_place for s in model.package.states] == [True]
    state, row_1 = model.new_state(), np.array([1])
    model.run([row_1], state=state)
    before = state.copy()
    with pytest.raises(weft.RuntimeFailure, match="index 7 is outside"):
        model.run([np.array([7])], state=state)
    spoilt = "a call failed while it wrote the state, which is neither old nor new"
    with pytest.raises(weft.RuntimeFailure, match=spoilt):
        model.run([row_1], state=state)
    with pytest.raises(weft.RuntimeFailure, match=spoilt):
        state.copy()
    state.reset()
    model.run([row_1], state=state)
    np.testing.assert_array_equal(state["mean"], before["mean"])


def test_one_state_in_two_threads_is_an_error() -> None:
    g = GraphBuilder("slow", 0)
    x, h = g.input("x", (256, 256)), g.input("h", (256, 256))
    g.output(g.op("MatMul", x, h), "next_h")
    model = weft.compile(g.model().SerializeToString(), state={"h": "next_h"}, threads=1)
    state, array = model.new_state(), np.ones((256, 256), np.float32)
    told: list[str] = []
    done = threading.Event()

    def run() -> None:
        while not done.is_set():
            try:
                model.run([array], state=state)
            except weft.RuntimeFailure as error:
                told.append(error.message)
                done.set()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for t in threads:
        t.start()
    threads[0].join(20)
    done.set()
    for t in threads:
        t.join()
    assert set(told) == {"the state is in use by another call"}
