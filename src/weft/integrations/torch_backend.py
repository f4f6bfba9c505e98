"""Weft as a backend of `torch.compile`.

    fast = torch.compile(model, backend="weft")
    frozen = torch.compile(model, backend="weft", options={"freeze": True})

PyTorch captures the graphs of a model, checks by guards that they hold for a call, makes them functional, and derives those of
gradients; Weft compiles each. Parameters are inputs, held once, and what is done to them is seen by the next call. Tensors are
shared with Weft without copies, both ways, if they are contiguous.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule

from weft.driver.compile import compile as compile_model
from weft.frontends.torch.decompose import decompositions
from weft.frontends.torch.graph_module import Captured, from_graph_module
from weft.runtime.model import Model
from weft.support.errors import InputError, ModelError

Compiled: TypeAlias = Callable[[list[Any]], list[Any]]

OPTIONS: Final = {"freeze": False, "fallback": True, "threads": None, "precision": "model", "opt_level": 3}
"""The options and their defaults.

With *freeze*, parameters are constants, which Weft packs for its kernels: that is faster, and holds them twice. When one was
changed since, its graph is compiled again. With *fallback*, PyTorch itself runs graphs that Weft can't compile, and a warning
says why; without it they are refused. The others are those of `weft.compile`; *threads* are by default `torch.get_num_threads()`.
"""


def weft_backend(
    module: GraphModule, inputs: Sequence[Any], options: dict[str, Any] | None = None, **_: Any
) -> Compiled:
    """Compiles a graph that Dynamo captured; raises `InputError` for options that there are not."""
    unknown = sorted(set(options or {}) - set(OPTIONS))
    if unknown:
        raise InputError(
            f"the backend has no option {unknown[0]!r}", hint=f"its options are {', '.join(map(repr, sorted(OPTIONS)))}"
        )
    chosen = {**OPTIONS, **(options or {})}
    trained = partial(_compiled, options={**chosen, "freeze": False})
    made: Compiled = aot_autograd(
        fw_compiler=trained,
        bw_compiler=trained,
        inference_compiler=partial(_compiled, options=chosen),
        decompositions=dict(decompositions()),
    )(module, inputs)
    return made


def _compiled(module: GraphModule, inputs: Sequence[Any], options: dict[str, Any]) -> Compiled:
    """Returns what runs a functional graph; it takes its arguments in a list."""
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    static = tuple(metadata.static_input_indices) if metadata is not None else ()
    freezes = bool(static) and options["freeze"]
    made = _Frozen(module, static, options) if freezes else _built(module, {}, options, static)
    made._boxed_call = True  # type: ignore[attr-defined] # it is given the only references to its arguments
    return made


def _built(
    module: GraphModule, weights: dict[int, torch.Tensor], options: dict[str, Any], static: tuple[int, ...] = ()
) -> Compiled:
    """Compiles a graph, or returns what lets PyTorch run it; the arguments *static* are weights."""
    try:
        with unset_fake_temporarily():  # constants of the graph have elements, and there they would be refused
            captured = from_graph_module(module, weights)
        threads = options["threads"] or torch.get_num_threads()
        known = {"precision": options["precision"], "opt_level": options["opt_level"]}
        model = compile_model(captured.graph, threads=threads, **known) if captured.results else None
    except ModelError as error:
        if not options["fallback"]:
            raise
        warnings.warn(f"PyTorch itself runs a graph that Weft can't compile: {error}", stacklevel=2)
        return _Interpreted(module)
    return _Run(module, captured, model, static)


class _Interpreted:
    """A graph that PyTorch runs."""

    def __init__(self, module: GraphModule) -> None:
        self.module = module

    def __call__(self, args: list[Any]) -> list[Any]:
        given = list(args)
        args.clear()
        return list(self.module(*given))


class _Result(NamedTuple):
    """What PyTorch expects of a result: its number, the order of its dimensions in memory if that is another, and its kind."""

    number: int
    order: tuple[int, ...] | None
    is_size: bool
    is_complex: bool


class _Run:
    """A compiled graph, called with tensors and numbers of PyTorch's."""

    def __init__(self, module: GraphModule, captured: Captured, model: Model | None, static: tuple[int, ...]) -> None:
        self.model, self.arguments = model, captured.arguments
        self.held: dict[int, tuple[int, Any]] = dict.fromkeys(static, (0, None))
        output = next(n for n in reversed(module.graph.nodes) if n.op == "output").args[0]
        self.made: list[Any] = [None] * len(output)
        self.passed, self.draws = captured.passed, captured.draws
        self.results = [_result(k, output[k]) for k in captured.results]

    def __call__(self, args: list[Any]) -> list[Any]:
        given = [self._held(k, args[k]) if k in self.held else _array(args[k]) for k in self.arguments]
        if self.draws:
            given.append(_seed())
        made = list(self.made)
        for k, argument in self.passed.items():
            made[k] = args[argument]
        args.clear()
        if self.model is not None:
            for result, array in zip(self.results, self.model.run(given), strict=True):
                made[result.number] = array.item() if result.is_size else _tensor(array, result)
        return made

    def _held(self, k: int, tensor: torch.Tensor) -> Any:
        """Returns the array of a weight, made once for each place in memory: making it takes longer than most else in a call."""
        place = tensor.data_ptr()
        if self.held[k][0] != place or not place:
            if not tensor.is_contiguous() or tensor.is_complex():
                return _array(tensor)
            self.held[k] = (place, _array(tensor))
        return self.held[k][1]


def _seed() -> Any:
    """Returns the seed of a call, which PyTorch's own generator draws: `torch.manual_seed` makes calls the same again."""
    return torch.randint(torch.iinfo(torch.int64).max, (), dtype=torch.int64).numpy()


class _Frozen:
    """A graph whose weights are constants: it is compiled when it is called first, and again when one of them was changed."""

    def __init__(self, module: GraphModule, static: tuple[int, ...], options: dict[str, Any]) -> None:
        self.module, self.static, self.options = module, static, options
        self.version: list[tuple[int, int]] = []
        self.run: Compiled = _Interpreted(module)

    def __call__(self, args: list[Any]) -> list[Any]:
        version = [(args[k].data_ptr(), _version(args[k])) for k in self.static]
        if version != self.version:
            weights = {k: args[k].detach() for k in self.static if not args[k].is_inference()}
            self.run = _built(self.module, weights, self.options)
            self.version = version
        return self.run(args)


def _version(t: torch.Tensor) -> int:
    """Returns how often a tensor was written; -1 for those of inference mode: nobody counts, so they are no constants."""
    return -1 if t.is_inference() else t._version


def _array(value: Any) -> Any:
    """Returns a tensor's elements as an array of the same memory, if they are in order there; a number as an array."""
    if not isinstance(value, torch.Tensor):
        return np.asarray(value, np.int64)
    held = value.detach().resolve_conj().contiguous()
    if held.is_complex():
        return torch.view_as_real(held).numpy()
    if held.dtype is torch.bfloat16:
        return held.view(torch.int16).numpy().view("V2")
    return held.numpy()


def _tensor(array: Any, result: _Result) -> torch.Tensor:
    """Returns an array as a tensor of the same memory; with its dimensions in memory in another order, as a copy."""
    if array.dtype.kind == "V":
        made = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    else:
        made = torch.from_numpy(array)
    made = torch.view_as_complex(made) if result.is_complex else made
    order = result.order
    if order is None:
        return made
    back = [order.index(d) for d in range(len(order))]
    return made.permute(order).contiguous().permute(back)


def _result(number: int, node: Any) -> _Result:
    """Returns what PyTorch expects of a result."""
    meta = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    if not isinstance(meta, torch.Tensor):
        return _Result(number, None, is_size=True, is_complex=False)
    return _Result(number, _order(node), is_size=False, is_complex=meta.is_complex())


def _order(node: Any) -> tuple[int, ...] | None:
    """Returns the order in memory of an output's dimensions where PyTorch expects another than theirs."""
    meta = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    if not isinstance(meta, torch.Tensor) or meta.is_contiguous() or 0 in meta.shape:
        return None
    strides = [int(s) if isinstance(s, int) else s.node.hint for s in meta.stride()]
    if any(not s for s in strides):
        return None  # repeated elements, which have no place of their own
    return tuple(sorted(range(len(strides)), key=lambda d: -strides[d]))
