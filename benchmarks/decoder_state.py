#!/usr/bin/env python3
"""A GPT-2-like decoder whose cache is a state, against ONNX Runtime with bound inputs and outputs: a prompt, then greedy tokens.

    .venv/bin/python -m benchmarks.decoder_state [--size small] [--rounds 5] [--tokens 200]     in the repository's root

One artifact for the prompt and for every token. Both runtimes get the same tokens, in turns of TURN of them, on one thread; ONNX
Runtime's caches lie in two sets of buffers that change places, so that nothing is allocated for a token, and it writes all rows
for each. Times are processor time, medians over the rounds. Printed are

* the time of the prompt, and of a token in each turn, with the ratio of ONNX Runtime's time to Weft's;
* how much longer a token takes in the last turn than in the first, beside how many more bytes it reads of weights and caches;
* how near that is to the speed of memory: the bytes of a token by the time that one core takes to read as many;
* the bytes of caches that a token reads, writes and copies, counted from the loops of the kernels.

Exits with 1 where tokens differ, a cache is copied, or a figure is beyond --growth or --ratio.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from statistics import median
from typing import Final

import numpy as np
import onnx
import onnxruntime
from tests.decoders import growing_decoder

import weft
from weft.driver.build import build
from weft.driver.measure.bandwidth import ReadBandwidth
from weft.driver.options import check_options
from weft.graph import FusedGraph, Group, state_pairs
from weft.ir import Const, Expr, Var, free_vars, index, substitute
from weft.loop import AxisKind, Block, Buffer, loads, statements, stores
from weft.ops import simplify_size
from weft.te import to_program

PAIRS: Final = {"past_*": "present_*"}
PROMPT, CAPACITY, TURN = 16, 512, 20


@dataclass(frozen=True)
class Size:
    """How large a decoder is."""

    layers: int
    heads: int
    width: int
    vocabulary: int

    def model(self) -> onnx.ModelProto:
        return growing_decoder(self.layers, self.heads, self.width, self.vocabulary, positions=1024)

    @property
    def weights_bytes(self) -> int:
        """The bytes of all matrices that a token is multiplied by, and of the table that makes logits."""
        return 4 * (12 * self.layers * self.width + self.vocabulary) * self.width


SIZES: Final = {"small": Size(4, 4, 256, 1000), "gpt2": Size(12, 12, 768, 50257)}


class Weft:
    """One conversation with the compiled model."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = weft.compile(model, state=PAIRS, capacity={"past_*": CAPACITY}, threads=1)
        self.state = self.model.new_state()

    def begin(self) -> None:
        self.state.reset()

    def step(self, ids: np.ndarray) -> int:
        return int(self.model.run([ids], state=self.state)[0].argmax())


class Bound:
    """One conversation with ONNX Runtime: caches in buffers of CAPACITY rows, of which those in use are bound for each token."""

    def __init__(self, model: onnx.ModelProto, size: Size) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = 1, 1, 3
        self.session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self.names = [f"{kind}{n}" for n in range(size.layers) for kind in "kv"]
        self.heads, self.depth = size.heads, size.width // size.heads
        room = size.heads * CAPACITY * self.depth
        self.buffers = [[np.zeros(room, np.float32) for _ in self.names] for _ in range(2)]
        self.logits = np.zeros((1, size.vocabulary), np.float32)
        self.rows = self.now = 0

    def begin(self) -> None:
        self.rows = 0

    def step(self, ids: np.ndarray) -> int:
        binding, length = self.session.io_binding(), self.rows + ids.shape[1]
        binding.bind_cpu_input("ids", ids)
        past, present = self.buffers[self.now], self.buffers[1 - self.now]
        shapes = [(1, self.heads, n, self.depth) for n in (self.rows, length)]
        for name, a, b in zip(self.names, past, present, strict=True):
            binding.bind_input(f"past_{name}", "cpu", 0, np.float32, shapes[0], a.ctypes.data)
            binding.bind_output(f"present_{name}", "cpu", 0, np.float32, shapes[1], b.ctypes.data)
        binding.bind_output("logits", "cpu", 0, np.float32, self.logits.shape, self.logits.ctypes.data)
        self.session.run_with_iobinding(binding)
        self.rows, self.now = length, 1 - self.now
        return int(self.logits.argmax())


@dataclass(frozen=True)
class CacheTraffic:
    """Bytes of caches that a call reads, writes and copies: from one place in memory to another."""

    read: int
    written: int
    copied: int


def cache_traffic(fused: FusedGraph, sizes: Mapping[str, int]) -> CacheTraffic:
    """Count the traffic of the states of a graph, over the loops of all groups, for symbolic *sizes* by name.

    An element that a group reads or writes counts once. A state that is not written in its place is one more buffer, which the
    group that writes it fills; an element of a cache is copied where a group stores it, as it is or changed, but in no sum.
    """
    counted = [_group_traffic(fused, g, sizes) for g in fused.groups]
    return CacheTraffic(*[sum(n) for n in zip(*counted, strict=True)])


def _group_traffic(fused: FusedGraph, group: Group, sizes: Mapping[str, int]) -> tuple[int, int, int]:
    roots = {fused.root(v) for p in state_pairs(fused.graph) for v in (p.taken, p.left)}
    inputs, outputs = group.tensors()
    function = to_program(inputs, outputs, group.name, group.sizes).entry
    params = [p for p in function.params if isinstance(p, Buffer)]
    of = dict(zip(params, [*group.inputs, *group.outputs], strict=True))
    held = {b for b, v in of.items() if fused.root(v) in roots}
    if not held:
        return 0, 0, 0
    known = {v: index(sizes[v.name]) for v in group.sizes}
    read, written, copied = dict[Buffer, int](), 0, 0
    carried = set(held)
    for block in [s for s in statements(function.body) if isinstance(s, Block)]:
        extents = {a.var: _number(a.extent, known) for a in block.axes}
        is_sum = any(a.kind is AxisKind.REDUCE for a in block.axes)
        for s in stores(block.body):
            seen = loads(s.value)
            for x in [x for x in seen if x.buffer in held]:
                used = {v for i in x.indices for v in free_vars(i)}
                count = prod(n for v, n in extents.items() if v in used)
                read[x.buffer] = max(read.get(x.buffer, 0), count * x.buffer.dtype.bytes)
            nbytes = prod(extents.values()) * s.buffer.dtype.bytes
            if not is_sum and any(x.buffer in carried for x in seen):
                carried.add(s.buffer)
                copied += nbytes if s.buffer in of else 0
            written += nbytes if s.buffer in held else 0
    return sum(read.values()), written, copied


def _number(e: Expr, known: Mapping[Var, Expr]) -> int:
    value = simplify_size(substitute(e, known))
    assert isinstance(value, Const), f"{value} is no number"
    return int(value.value)


@dataclass(frozen=True)
class Figures:
    """Seconds of the prompt, and of a token of each turn, of Weft and of ONNX Runtime, and the tokens of both."""

    prompt: tuple[float, float]
    turns: Sequence[tuple[float, float]]
    tokens: tuple[Sequence[int], Sequence[int]]

    @property
    def growth(self) -> float:
        """How much longer a token of Weft's last turn takes than one of its second: the first warms the caches up."""
        return self.turns[-1][0] / self.turns[1][0]

    @property
    def ratio(self) -> float:
        """ONNX Runtime's time over Weft's, of a token."""
        return median(theirs / ours for ours, theirs in self.turns)


def measure(engines: Sequence[Weft | Bound], rounds: int, tokens: int) -> Figures:
    """Run *rounds* conversations on both engines, and return their medians."""
    prompt = np.arange(PROMPT, dtype=np.int64)[None]
    starts: list[list[float]] = [[], []]
    taken: list[dict[int, list[float]]] = [{}, {}]
    said: list[list[int]] = [[], []]
    for _ in range(rounds):
        for n, engine in enumerate(engines):
            engine.begin()
            token, spent = _timed(engine, prompt)
            starts[n].append(spent)
            said[n] = [token]
        for turn in range(tokens // TURN):
            for n in (turn % 2, 1 - turn % 2):
                for _ in range(TURN):
                    token, spent = _timed(engines[n], np.array([[said[n][-1]]], np.int64))
                    taken[n].setdefault(turn, []).append(spent)
                    said[n].append(token)
    turns = [(median(taken[0][k]), median(taken[1][k])) for k in taken[0]]
    return Figures((median(starts[0]), median(starts[1])), turns, (said[0], said[1]))


def _timed(engine: Weft | Bound, ids: np.ndarray) -> tuple[int, float]:
    begin = time.thread_time()
    token = engine.step(ids)
    return token, time.thread_time() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=list(SIZES), default="gpt2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument(
        "--growth", type=float, default=0.03, help="how far from the growth of the bytes read that of the time may be"
    )
    parser.add_argument(
        "--ratio", type=float, default=1.25, help="how many times faster than ONNX Runtime it is to be at least"
    )
    asked = parser.parse_args()
    size = SIZES[asked.size]
    model = size.model()
    made = build(model, options=check_options(state=PAIRS, capacity={"past_*": CAPACITY}))
    found = measure([Weft(model), Bound(model, size)], asked.rounds, asked.tokens)
    print(f"{'prompt':>12} {found.prompt[0] * 1e3:8.2f} ms  ONNX Runtime {found.prompt[1] * 1e3:8.2f} ms")
    for k, (ours, theirs) in enumerate(found.turns):
        span = f"{k * TURN} to {(k + 1) * TURN - 1}"
        print(f"{span:>12} {ours * 1e3:8.2f} ms  ONNX Runtime {theirs * 1e3:8.2f} ms  {theirs / ours:5.2f}")
    middle = [PROMPT + k * TURN + TURN // 2 for k in (1, len(found.turns) - 1)]
    traffic = [cache_traffic(made.fused, {"new": 1, "past_and_one": past + 1}) for past in middle]
    first, last = (size.weights_bytes + t.read for t in traffic)
    print(f"growth from token {TURN} on: {found.growth:.3f}, of the bytes read {last / first:.3f}")
    rate = ReadBandwidth().rate(int(last))
    print(f"speed of memory: {last / found.turns[-1][0] / 1e9:.1f} of {rate:.1f} GB/s")
    print(
        f"of caches, a token reads {traffic[1].read:,} bytes, writes {traffic[1].written:,} and copies {traffic[1].copied:,}"
    )
    same = found.tokens[0] == found.tokens[1]
    print(
        f"{found.ratio:.2f} times as fast as ONNX Runtime; the {asked.tokens} tokens are {'equal' if same else 'DIFFERENT'}"
    )
    flat = abs(found.growth - last / first) <= asked.growth
    return 0 if same and flat and found.ratio >= asked.ratio and not traffic[1].copied else 1


if __name__ == "__main__":
    sys.exit(main())
