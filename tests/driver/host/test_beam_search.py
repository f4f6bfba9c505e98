"""A beam search: a `Loop` whose histories of tokens grow, and that ends where the best of them does, in each form of a model."""

from __future__ import annotations

import numpy as np
import onnx
from onnx.helper import make_node as node
from tests.driver.host.ways import BOOL, F32, I64, Array, Info, Ways, graph, model
from tests.frontends.onnx.nodes import floats

WORDS, WIDTH, BEAMS, END = 11, 8, 3, 3


def decoder() -> dict[str, Array]:
    """Returns the weights of a decoder that sees the last token alone."""
    return {"table": floats(WORDS, WIDTH, seed=1), "out": floats(WIDTH, WORDS, seed=2)}


def search() -> onnx.ModelProto:
    """Returns the search of at most `most` tokens after `first`: the histories, best first, and their scores."""
    body = graph(
        [
            node("Gather", ["tokens", "last"], ["now"], axis=1),
            node("Gather", ["table", "now"], ["x"]),
            node("MatMul", ["x", "out"], ["logits"]),
            node("LogSoftmax", ["logits"], ["p"], axis=-1),
            node("Unsqueeze", ["scores", "one"], ["column"]),
            node("Add", ["p", "column"], ["sums"]),
            node("Reshape", ["sums", "flat"], ["all"]),
            node("TopK", ["all", "beams"], ["scores_next", "at"], largest=1, sorted=1),
            node("Div", ["at", "words"], ["beam"]),
            node("Mod", ["at", "words"], ["word"]),
            node("Gather", ["tokens", "beam"], ["history"], axis=0),
            node("Unsqueeze", ["word", "one"], ["added"]),
            node("Concat", ["history", "added"], ["tokens_next"], axis=1),
            node("Gather", ["word", "zero"], ["best"], axis=0),
            node("Equal", ["best", "end"], ["is_over"]),
            node("Not", ["is_over"], ["go_on"]),
        ],
        [("step", I64, []), ("go", BOOL, []), ("tokens", I64, [BEAMS, None]), ("scores", F32, [BEAMS])],
        [("go_on", BOOL, []), ("tokens_next", I64, [BEAMS, None]), ("scores_next", F32, [BEAMS])],
    )
    inputs: list[Info] = [("first", I64, [BEAMS, 1]), ("most", I64, [])]
    outputs: list[Info] = [("found", I64, [BEAMS, None]), ("total", F32, [BEAMS])]
    start = np.array([0, -1e9, -1e9], np.float32)  # all beams are alike at first: one of them counts
    numbers = {"last": -1, "zero": 0, "end": END, "words": WORDS, "yes": True}
    constants: dict[str, object] = {
        **decoder(),
        **{name: np.array(v) for name, v in numbers.items()},
        **{name: np.array([v]) for name, v in {"one": 1, "flat": -1, "beams": BEAMS}.items()},
        "start": start,
    }
    return model(
        [node("Loop", ["most", "yes", "first", "start"], ["found", "total"], body=body)], inputs, outputs, constants
    )


def searched(first: int, most: int) -> tuple[Array, Array]:
    """Returns the same, step by step."""
    weights, tokens = decoder(), np.full((BEAMS, 1), first)
    scores = np.array([0, -1e9, -1e9], np.float32)
    for _ in range(most):
        logits = weights["table"][tokens[:, -1]] @ weights["out"]
        logits -= logits.max(1, keepdims=True)
        sums = (logits - np.log(np.exp(logits).sum(1, keepdims=True)) + scores[:, None]).ravel()
        at = np.argsort(-sums, kind="stable")[:BEAMS]
        scores, tokens = sums[at], np.concatenate([tokens[at // WORDS], (at % WORDS)[:, None]], axis=1)
        if tokens[0, -1] == END:
            break
    return tokens, scores


def test_tokens_are_those_of_the_reference() -> None:
    ways, lengths = Ways(search(), rtol=1e-5), set[int]()
    for first in range(WORDS):
        tokens, scores = searched(first, 7)
        ways.check({"first": np.full((BEAMS, 1), first), "most": np.array(7)}, wanted=[[tokens, scores]])
        lengths.add(tokens.shape[1])
    assert len(lengths) == 6  # some end before others
