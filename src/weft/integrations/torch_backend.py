"""Weft as a backend of `torch.compile`.

    fast = torch.compile(model, backend="weft")
    frozen = torch.compile(model, backend="weft", options={"freeze": True})

PyTorch captures the graphs of a model, checks by guards that they hold for a call, makes them functional, and derives those of
gradients; Weft compiles each. Changes of parameters are seen by the next call. Tensors are shared with Weft without copies,
both ways, if they are contiguous.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext
from torch._prims_common import is_contiguous_or_false
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule

from weft.driver.options import check_options
from weft.driver.parameter_model import ParameterModel, compile_parameters
from weft.frontends.torch.decompose import decompositions, is_effect
from weft.frontends.torch.graph_module import Captured, from_graph_module
from weft.frontends.torch.nodes import elements_of
from weft.frontends.torch.whole_layers import with_whole_layers
from weft.integrations.torch_threads import share_threads
from weft.native import _rt
from weft.support.errors import InputError, ModelError

Compiled: TypeAlias = Callable[[list[Any]], list[Any]]

OPTIONS: Final = {
    "freeze": False,
    "prepack": False,
    "fallback": True,
    "threads": None,
    "precision": "model",
    "opt_level": 3,
}
"""The options and their defaults.

Parameters are held once: kernels read those of PyTorch, and what other forms they need of them are made in every call. With
*prepack*, kernels of inference read filters among the parameters in the form that suits them, which is held beside the parameter,
and so with matrices where reading them as they lie would take much longer. That form is made again by the next call when PyTorch
counted a write to the parameter (`Tensor._version`), or this has other memory, or one of some elements that are compared
differs: a write of a few elements that PyTorch does not count, as one to `.data`, may go unseen. With *freeze*, parameters are
constants, those of normalizations folded into others; when one was changed since, its graph is compiled again.

With *fallback*, PyTorch itself runs graphs that Weft can't compile, and a warning says why; without it they are refused. The
others are those of `weft.compile`; *threads* are by default `torch.get_num_threads()`.
"""


_FAKE: Final = torch._C._TorchDispatchModeKey.FAKE

SOME_SIZE: Final = 1 << 20
"""The stand-in for a size that a call finds, where the order of dimensions in memory is asked for."""

SAMPLES: Final = 64
"""About as many elements of a weight are compared in each call, at odd distances, which meet any pattern of rows and columns.

They tell of writes that nobody counts, through `Tensor.data` or NumPy, as optimizers and loaders of weights do them to whole
tensors.
"""

TENSORS: Final = _rt.Exchange(torch.Tensor)

share_threads()

MODES: Final = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
"""The modes of `torch.compile`, which are those of PyTorch's own backend."""


def weft_backend(
    module: GraphModule,
    inputs: Sequence[Any],
    options: dict[str, Any] | None = None,
    mode: str | None = None,
    **_: Any,
) -> Compiled:
    """Compiles a graph that Dynamo captured; raises `InputError` for options and modes that there are not.

    Kernels and calls are the same in all modes; a warning says so of those that are not the default.
    """
    _check_mode(mode)
    unknown = sorted(set(options or {}) - set(OPTIONS))
    if unknown:
        raise InputError(
            f"the backend has no option {unknown[0]!r}", hint=f"its options are {', '.join(map(repr, sorted(OPTIONS)))}"
        )
    chosen = {**OPTIONS, **(options or {})}
    module = with_whole_layers(module, inputs)
    trained = partial(_compiled, options={**chosen, "freeze": False, "prepack": False})
    made: Compiled = aot_autograd(
        fw_compiler=trained,
        bw_compiler=trained,
        inference_compiler=partial(_compiled, options=chosen),
        decompositions=dict(decompositions()),
    )(module, inputs)
    return made


def _check_mode(mode: str | None) -> None:
    if mode is not None and mode not in MODES:
        raise InputError(f"there is no mode {mode!r}", hint=f"the modes are {', '.join(map(repr, MODES))}")
    if mode not in (None, "default"):
        warnings.warn(f"the backend has one mode: {mode!r} changes nothing", stacklevel=2)


def _compiled(module: GraphModule, inputs: Sequence[Any], options: dict[str, Any]) -> Compiled:
    """Returns the callable that runs a functional graph; it takes its arguments in a list."""
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    static = tuple(metadata.static_input_indices) if metadata is not None else ()
    written = {k for k, info in enumerate(metadata.input_info) if info.mutates_data} if metadata is not None else set()
    packed = tuple(k for k in static if k not in written and _is_packed(inputs[k])) if options["prepack"] else ()
    made: Any
    if static and options["freeze"]:
        made = _Frozen(module, static, options)
    elif packed:
        made = _Prepacked(module, packed, options)
    else:
        made = _built(module, options)
    traced = _Interpreted(module)

    def run(args: list[Any]) -> list[Any]:
        """Runs the graph; PyTorch does where it asks for shapes and types alone, of tensors without memory (`FakeTensorMode`)."""
        results: list[Any] = made(args) if torch._C._get_dispatch_mode(_FAKE) is None else traced(args)
        return results

    run._boxed_call = True  # type: ignore[attr-defined]  # it is given the only references to its arguments
    return run


def _is_packed(tensor: torch.Tensor) -> bool:
    """Tells whether kernels may want a weight in another form: it is no vector."""
    return bool(tensor.is_floating_point() and tensor.dim() > 1 and tensor.is_contiguous())


def _built(
    module: GraphModule,
    options: dict[str, Any],
    *,
    weights: dict[int, torch.Tensor] | None = None,
    parameters: dict[int, torch.Tensor] | None = None,
) -> _Run | _Interpreted:
    """Compiles a graph, or returns a callable by which PyTorch runs it."""
    try:
        with unset_fake_temporarily():  # constants of the graph have elements, and there they would be refused
            captured = from_graph_module(module, weights, parameters)
        threads = options["threads"] or torch.get_num_threads()
        known = check_options(precision=options["precision"], opt_level=options["opt_level"])
        model = compile_parameters(captured.graph, known, threads) if captured.results else None
    except ModelError as error:
        if not options["fallback"]:
            raise
        warnings.warn(f"PyTorch itself runs a graph that Weft can't compile: {error}", stacklevel=2)
        return _Interpreted(module)
    return _Run(module, captured, model)


class _Interpreted:
    """A graph that PyTorch runs."""

    def __init__(self, module: GraphModule) -> None:
        self.module = module

    def __call__(self, args: list[Any]) -> list[Any]:
        given = list(args)
        args.clear()
        return list(self.module(*given))


class _Result(NamedTuple):
    """A result as PyTorch expects it: its number, the order of its dimensions in memory if that is another, and its kind."""

    number: int
    order: tuple[int, ...] | None
    is_size: bool
    is_complex: bool

    @property
    def is_as_made(self) -> bool:
        """Tells whether it is a tensor as a model makes them."""
        return self.order is None and not self.is_size and not self.is_complex


class _Run:
    """A compiled graph, called with tensors and numbers of PyTorch's."""

    def __init__(self, module: GraphModule, captured: Captured, model: ParameterModel | None) -> None:
        self.model, self.parameters = model, captured.parameters
        places = [n for n in module.graph.nodes if n.op == "placeholder"]
        self.arguments = [(k, _is_plain(places[k])) for k in captured.arguments]
        self.tokens = [k for k in captured.arguments if _is_token(places[k])]
        numbers = {p.name: k for k, p in captured.parameters.items()}
        self.bound = [] if model is None else [numbers[name] for name in model.bound]
        output = next(n for n in reversed(module.graph.nodes) if n.op == "output").args[0]
        self.made: list[Any] = [None] * len(output)
        self.passed, self.shared, self.draws = captured.passed, captured.shared, captured.draws
        self.results = [_result(k, output[k]) for k in captured.results]
        self.as_made = len(self.results) == len(output) and all(r.is_as_made for r in self.results)

    def __call__(self, args: list[Any]) -> list[Any]:
        for k in self.tokens:
            args[k] = torch.empty(0)
        given = [args[k] if is_plain else _array(args[k]) for k, is_plain in self.arguments]
        if self.draws:
            given.append(_seed())
        given += [args[k] for k in self.bound]
        made = list(self.made)
        for k, argument in self.passed.items():
            made[k] = args[argument]
        viewed = [args[k] for k in self.shared.arguments]
        args.clear()
        if self.model is not None and self.as_made and not self.model.has_late_outputs:
            return self.model.run_in(TENSORS, given)
        for result, tensor in zip(self.results, [] if self.model is None else _results(self.model, given), strict=True):
            made[result.number] = tensor.item() if result.is_size else _laid_out(tensor, result)
        return self._with_views(made, viewed) if self.shared.numbers else made

    def _with_views(self, made: list[Any], viewed: list[Any]) -> list[Any]:
        """Returns the results with those that are views of arguments, or of others of them."""
        views = self.shared.replay(*viewed, *[made[k] for k in self.shared.bases])
        for k, view in zip(self.shared.numbers, views, strict=True):
            made[k] = view
        return made

    def refresh(self, tensors: Mapping[int, torch.Tensor]) -> None:
        """Takes the elements of parameters from *tensors*."""
        for k, parameter in self.parameters.items():
            parameter.bind(elements_of(tensors[k], parameter.name))
        if self.model is not None:
            self.model.refresh()


def _results(model: ParameterModel, given: list[Any]) -> list[torch.Tensor]:
    """Runs a model; outputs whose sizes its call finds are made as arrays first."""
    if not model.has_late_outputs:
        return model.run_in(TENSORS, given)
    given = [_array(v) if isinstance(v, torch.Tensor) else v for v in given]
    return [_tensor(array) for array in model.run(given)]


def _is_plain(node: torch.fx.Node) -> bool:
    """Tells whether a model reads an argument as it lies in memory; guards see that all that come are like the first."""
    meta = node.meta.get("val")
    if not isinstance(meta, torch.Tensor) or meta.is_complex() or meta.is_neg():
        return False
    return _order(node) is None and all(map(_hint, meta.stride()))


def _is_token(node: torch.fx.Node) -> bool:
    """Tells whether an argument orders effects, such as checks of a factorization: AOTAutograd calls with None in its place."""
    return any(is_effect(u) and u.args[0] is node for u in node.users)


def _seed() -> Any:
    """Returns the seed of a call, which PyTorch's own generator draws: `torch.manual_seed` makes calls the same again."""
    return torch.randint(torch.iinfo(torch.int64).max, (), dtype=torch.int64).numpy()


class _Frozen:
    """A graph whose weights are constants: it is compiled when it is called first, and again when one of them was changed."""

    def __init__(self, module: GraphModule, static: tuple[int, ...], options: dict[str, Any]) -> None:
        self.module, self.static, self.options = module, static, options
        self.watch, self.lock = _rt.Watch(torch.Tensor, SAMPLES), Lock()
        self.run: Compiled = _Interpreted(module)

    def __call__(self, args: list[Any]) -> list[Any]:
        with self.lock:
            if self.watch.has_changed([args[k] for k in self.static]):
                weights = {k: args[k].detach() for k in self.static if not args[k].is_inference()}
                self.run = _built(self.module, self.options, weights=weights)
            run = self.run
        return run(args)


class _Prepacked:
    """A graph with parameters *packed*, whose other forms are made when it is called first, and when one of them was changed.

    Nobody counts the writes to tensors of inference mode: they are inputs as the other arguments are.
    """

    def __init__(self, module: GraphModule, packed: tuple[int, ...], options: dict[str, Any]) -> None:
        self.module, self.packed, self.options = module, packed, options
        self.watch, self.lock = _rt.Watch(torch.Tensor, SAMPLES), Lock()
        self.run: _Run | _Interpreted | None = None

    def __call__(self, args: list[Any]) -> list[Any]:
        with self.lock:
            if self.run is None:
                counted = {k: args[k].detach() for k in self.packed if not args[k].is_inference()}
                self.packed = tuple(counted)
                self.run = _built(self.module, self.options, parameters=counted)
                self.watch.has_changed([args[k] for k in self.packed])
            elif self.watch.has_changed([args[k] for k in self.packed]) and isinstance(self.run, _Run):
                self.run.refresh({k: args[k] for k in self.packed})
        return self.run(args)


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


def _tensor(array: Any) -> torch.Tensor:
    """Returns an array as a tensor of the same memory."""
    if array.dtype.kind == "V":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _laid_out(made: torch.Tensor, result: _Result) -> torch.Tensor:
    """Returns a tensor as PyTorch expects it, and no view; with its dimensions in memory in another order, as a copy."""
    made = torch.view_as_complex(made).data if result.is_complex else made
    order = result.order
    if order is None:
        return made
    back = [order.index(d) for d in range(len(order))]
    return made.permute(order).contiguous().permute(back).data


def _result(number: int, node: Any) -> _Result:
    """Returns the form in which PyTorch expects a result."""
    meta = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    if not isinstance(meta, torch.Tensor):
        return _Result(number, None, is_size=True, is_complex=False)
    return _Result(number, _order(node), is_size=False, is_complex=meta.is_complex())


def _order(node: Any) -> tuple[int, ...] | None:
    """Returns the order in memory of an output's dimensions where PyTorch expects another than theirs."""
    meta = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    if not isinstance(meta, torch.Tensor) or is_contiguous_or_false(meta) or any(s == 0 for s in _known(meta.shape)):
        return None
    strides = [_hint(s) for s in meta.stride()]
    if any(not s for s in strides):
        return None  # repeated elements, which have no place of their own
    return tuple(sorted(range(len(strides)), key=lambda d: -strides[d]))


def _known(shape: Sequence[Any]) -> list[int]:
    """Returns the sizes that are numbers."""
    return [s for s in shape if isinstance(s, int)]


def _hint(size: Any) -> int:
    """Returns a size, or the value of a symbolic one when the graph was captured; some size for one that a call finds."""
    if isinstance(size, int):
        return size
    return int(size.node.hint) if size.node.has_hint() else SOME_SIZE
