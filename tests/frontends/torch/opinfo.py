"""PyTorch's own database of operators and samples (OpInfo), each exported, compiled, and compared with what PyTorch computes.

    python -m tests.frontends.torch.opinfo --match 'nn.functional.*' --json opinfo.json
    python -m tests.frontends.torch.opinfo --how compile
    python -m tests.frontends.torch.opinfo --how compile --type complex64

PyTorch's database needs the package `expecttest`. With `--how compile` calls go through `torch.compile` instead, where PyTorch
itself runs what it can't capture, and what Weft can't compile is refused.

An operator *passes* if all of its samples do; it is *refused* if the worst is an error that names what is not supported, *wrong*
if some result differs, and *crashed* where anything but a `WeftError` was raised. What PyTorch can't export is *not exported*.
Of random numbers, which a model with a seed for an input draws, and of tensors that nothing was written to, types and shapes
alone are compared: these are *drawn*.
"""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np
import torch
from tests.support.time_limit import TooSlow, limited
from torch.utils import _pytree as pytree

import weft
from weft.frontends.torch.export_module import exported

SAMPLES: Final = 3
SECONDS: Final = 60
"""The processor time that one sample may take."""
ORDER: Final = ("pass", "drawn", "not exported", "refused", "slow", "crashed", "wrong")
"""What becomes of a sample; that of an operator is the last of its samples'."""


class Verdict(NamedTuple):
    """What became of one sample, and why."""

    kind: str
    why: str = ""


class OfTensors(torch.nn.Module):  # type: ignore[misc]
    """A call as a module of its tensors, or of copies that it may change; all other arguments are constants."""

    def __init__(self, function: Callable[..., Any], arguments: Any) -> None:
        super().__init__()
        self.function, self.copies = function, False
        self.leaves, self.spec = pytree.tree_flatten(arguments)

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        return tuple([v for v in self.leaves if isinstance(v, torch.Tensor)])

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = iter([t.clone() for t in tensors] if self.copies else tensors)
        leaves = [next(given) if isinstance(v, torch.Tensor) else v for v in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return [t for t in pytree.tree_leaves(self.function(*args, **kwargs)) if isinstance(t, torch.Tensor)]


def elements(t: torch.Tensor) -> np.ndarray[Any, Any]:
    """Returns a tensor's elements; complex ones as pairs of real ones."""
    held = t.detach().resolve_conj().resolve_neg().contiguous()
    held = torch.view_as_real(held) if held.is_complex() else held
    if held.dtype is torch.bfloat16:
        return held.view(torch.int16).numpy().view(ml_dtypes.bfloat16)  # type: ignore[no-any-return]
    return held.numpy()  # type: ignore[no-any-return]


def of_factors(name: str, made: Sequence[Any]) -> list[Any]:
    """Returns what does not depend on the signs of vectors that a matrix is factored by: their product, and their angles.

    Of eigenvalues in no order it is the sums of their powers, and of their vectors, of any direction in the complex plane, the
    sum of their squares, each times its value.
    """
    arrays = [np.asarray(a) for a in made]
    if name in ("linalg.eig", "linalg.eigvals"):
        values, *vectors = [a[..., 0] + 1j * a[..., 1] for a in arrays]
        sums = [(values**k).sum(-1) for k in range(1, values.shape[-1] + 1)]
        squares = [v * values[..., None, :] @ v.conj().mT for v in vectors]
        return [part for a in (*sums, *squares) for part in (a.real, a.imag)]
    if name == "linalg.eigh":
        values, v = arrays
        return [values, v * values[..., None, :] @ v.mT, v.mT @ v]
    if name in ("svd", "linalg.svd") and arrays[0].ndim > 1:
        u, s, v = arrays
        v, k = (v if name == "svd" else v.mT), s.shape[-1]
        return [s, u[..., :k] * s[..., None, :] @ v[..., :k].mT, u.mT @ u, v.mT @ v]
    return arrays


def difference(made: Sequence[Any], wanted: Sequence[Any]) -> str:
    """Returns how results differ from those wanted; nothing where they are the same."""
    if len(made) != len(wanted):
        return f"{len(made)} results, not {len(wanted)}"
    for a, b in zip(map(np.asarray, made), wanted, strict=True):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"{a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
        if b.size == 0:
            continue
        if b.dtype.kind not in "fV":
            if not np.array_equal(a, b):
                return "other integers"
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(y)
        if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
            return "other infinities or NaNs"
        most = float(np.abs(y[finite]).max(initial=0))
        worst = float(np.abs(x[finite] - y[finite]).max(initial=0))
        if not worst <= 1e-4 * max(most, 1e-2):
            return f"differs by {worst:.2g} of {most:.2g}"
    return ""


def _computed(module: OfTensors) -> list[np.ndarray[Any, Any]]:
    """Returns what PyTorch computes; a call that changes its tensors is given copies from then on."""
    given = [t.detach().clone() for t in module.tensors]
    made = [elements(t) for t in module(*given)]
    module.copies = any(not torch.equal(a, b) for a, b in zip(given, module.tensors, strict=True))
    return made


def tried(name: str, function: Callable[..., Any], arguments: Any, how: str) -> Verdict:
    """Compiles and runs one call, captured as *how* says, and compares."""
    module = OfTensors(function, arguments).eval()
    try:
        wanted = _computed(module)
    except Exception as error:
        return Verdict("not exported", f"{type(error).__name__}: {error}"[:160])
    return (_captured if how == "compile" else _compared)(name, module, wanted)


def _captured(name: str, module: OfTensors, wanted: list[np.ndarray[Any, Any]]) -> Verdict:
    """Runs a call by `torch.compile`, and compares; numbers drawn at random are of PyTorch's own generator's seed."""
    torch._dynamo.reset()
    fast = torch.compile(module, backend="weft", options={"fallback": False, "threads": 1})
    try:
        with limited(SECONDS), torch.no_grad():
            made = [elements(t) for t in fast(*[t.detach().clone() for t in module.tensors])]
    except TooSlow:
        return Verdict("slow", f"more than {SECONDS} s")
    except Exception as error:
        raised = getattr(error, "inner_exception", error)  # of one that the backend raised
        refused = isinstance(raised, weft.WeftError)
        kind = "refused" if refused else "crashed" if _is_captured(module) else "not exported"
        return Verdict(kind, f"{type(raised).__name__}: {raised}"[:400])
    differs = difference(of_factors(name, made), of_factors(name, wanted))
    if not differs:
        return Verdict("pass")
    draws = _draws(module) or "empty" in name
    alike = [(a.dtype, a.shape) for a in made] == [(b.dtype, b.shape) for b in wanted]
    return Verdict("drawn") if draws and alike else Verdict("wrong", differs)


def _is_captured(module: OfTensors) -> bool:
    """Tells whether `torch.compile` can run a call without Weft, by the same steps up to the backend."""
    torch._dynamo.reset()
    try:
        with torch.no_grad():
            torch.compile(module, backend="aot_eager")(*[t.detach().clone() for t in module.tensors])
    except Exception:
        return False
    return True


def _draws(module: OfTensors) -> bool:
    """Tells whether PyTorch's own results differ from one seed to another."""
    made = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        made.append([elements(t) for t in module(*[t.detach().clone() for t in module.tensors])])
    return bool(difference(*made))


def _compared(name: str, module: OfTensors, wanted: list[np.ndarray[Any, Any]]) -> Verdict:
    """Does so with a module, of which PyTorch computes what is *wanted*; one that may change its tensors is given copies."""
    try:
        program = exported(module, module.tensors)
    except Exception as error:
        return Verdict("not exported", f"{type(error).__name__}: {error}"[:160])
    try:
        with limited(SECONDS):
            model = weft.compile(program, cache=True, threads=1)
            seeds = [np.int64(0)] * (len(model.inputs) - len(module.tensors))  # of one that draws random numbers
            made = model.run([*[elements(t) for t in module.tensors], *seeds])
    except weft.WeftError as error:
        if "changes its input" in error.message and not module.copies:
            module.copies = True
            return _compared(name, module, wanted)
        return Verdict("refused", str(error))
    except TooSlow:
        return Verdict("slow", f"more than {SECONDS} s")
    except Exception as error:
        return Verdict("crashed", f"{type(error).__name__}: {error}"[:400])
    how = difference(of_factors(name, made), of_factors(name, wanted))
    if how and ("empty" in name or seeds):
        differs = [(np.asarray(a).dtype, np.shape(a)) for a in made] != [(b.dtype, b.shape) for b in wanted]
        return Verdict("wrong", how) if differs else Verdict("drawn")
    return Verdict("wrong", how) if how else Verdict("pass")


def verdict_of(op: Any, samples: int, how: str = "export", dtype: torch.dtype = torch.float32) -> Verdict:
    """Returns the worst of an operator's first samples of a type."""
    worst = Verdict("pass")
    torch.manual_seed(0)
    try:
        generator = iter(op.sample_inputs("cpu", dtype, requires_grad=False))
        found = list(itertools.islice(generator, samples))
        getattr(generator, "close", list)()  # now: one that is closed while a program is traced becomes a part of that
    except Exception as error:
        return Verdict("not exported", f"no samples: {error}"[:160])
    for s in found:
        made = tried(op.name, op.op, ((s.input, *s.args), s.kwargs), how)
        worst = max(worst, made, key=lambda v: ORDER.index(v.kind))
    return worst


def database(dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """Returns PyTorch's entries of operators that take a type, by their names."""
    from torch.testing._internal.common_methods_invocations import op_db

    chosen = [op for op in op_db if dtype in op.supported_dtypes("cpu")]
    return {f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name: op for op in chosen}


def main() -> None:
    """Tries all operators, or those that match, and prints one line each and a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--match", default="*", help="a pattern of names")
    parser.add_argument("--names", help="a file of names, one a line")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--how", choices=("export", "compile"), default="export")
    parser.add_argument("--type", default="float32", help="the type of the samples")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    wanted = set(Path(given.names).read_text().split()) if given.names else None
    found: dict[str, list[str]] = {}
    dtype = getattr(torch, given.type)
    for name, op in database(dtype).items():
        if not fnmatch.fnmatchcase(name, given.match) or (wanted is not None and name not in wanted):
            continue
        start = time.process_time()
        verdict = verdict_of(op, given.samples, given.how, dtype)
        found[name] = list(verdict)
        print(f"{verdict.kind:12} {name:45} {time.process_time() - start:6.1f} s  {verdict.why!r}", flush=True)
        if given.json is not None:
            given.json.write_text(json.dumps(found, indent=1))
    print(dict(Counter(kind for kind, _ in found.values())), file=sys.stderr)


if __name__ == "__main__":
    main()
