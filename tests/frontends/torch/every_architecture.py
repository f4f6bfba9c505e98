"""Every architecture of the package transformers that PyTorch exports: compiled, and compared with PyTorch.

    python -m tests.frontends.torch.every_architecture                    all, in a random order; some hours
    python -m tests.frontends.torch.every_architecture vits jetmoe

Each is built from its own configuration, with fewer layers and features where it takes them, with random weights, and run in a
process of its own. Those that need other packages, or inputs that are not tried here, are left out, and so are those that
PyTorch does not export: a line for each says so. Exits with 1 if Weft fails, or disagrees. Models that order elements by almost
equal numbers, as detectors with random weights order proposals, differ from their own results in float64, and
so say nothing.
"""

from __future__ import annotations

import argparse
import logging
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_MAPPING, MODEL_MAPPING_NAMES

import weft

TOLERANCE: Final = 5e-3
"""The difference allowed, of the largest element: of deep networks with random weights."""

UNSTABLE: Final = 4
"""How many times the difference between PyTorch's own results and those in float64 is no failure of others."""

SECONDS: Final = 300
"""The time that one may take."""

MOST_OUTPUTS: Final = 3
MOST_PARAMETERS: Final = 400_000_000

LAYERS: Final = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers")
WIDTHS: Final = ("hidden_size", "d_model", "n_embd", "dim", "embedding_size")
FEED_FORWARD: Final = ("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff")
HEADS: Final = ("num_attention_heads", "n_head", "n_heads", "encoder_attention_heads", "decoder_attention_heads")
SMALL: Final[dict[str, int]] = {
    **dict.fromkeys(LAYERS, 2),
    **dict.fromkeys(WIDTHS, 64),
    **dict.fromkeys(FEED_FORWARD, 128),
    **dict.fromkeys(HEADS, 4),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 1000,
    "moe_intermediate_size": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "use_cache": False,
}
"""The fields of configurations that are set."""


class LeftOut(Exception):
    """The architecture can't be tried here."""


def shrink(config: Any, depth: int = 0) -> Any:
    """Makes a model of a configuration small."""
    for name, value in SMALL.items():
        if isinstance(getattr(config, name, None), int):
            setattr(config, name, value)
    if isinstance(getattr(config, "layer_types", None), list):
        config.layer_types = config.layer_types[:2]
    for part in list(vars(config).values()):
        if isinstance(part, transformers.PretrainedConfig) and depth < 2:
            shrink(part, depth + 1)
    return config


def built(name: str) -> tuple[Any, Any]:
    """Returns a model and its configuration: small ones, or those that it has by default where they do not go together."""
    kind = CONFIG_MAPPING[name]
    of_kind = MODEL_MAPPING[kind]
    make = of_kind[0] if isinstance(of_kind, tuple) else of_kind
    told = ""
    for small in (True, False):
        try:
            config = shrink(kind()) if small else kind()
            with torch.device("meta"):
                size = sum(p.numel() for p in make(config).parameters())
            if size <= MOST_PARAMETERS:
                return make(shrink(kind()) if small else kind()).eval(), config
            told = f"it has {size} parameters"
        except Exception as error:  # of whatever kind: it is the package's
            told = _told(error)
    raise LeftOut(f"it is not built: {told}")


def inputs_to_try(model: Any, config: Any) -> Iterator[dict[str, Any]]:
    """Yields inputs that a model may take: tokens, pictures, waves, spectra or series, alone or two of them."""
    ids = torch.randint(3, 500, (1, 32))
    seen = getattr(config, "vision_config", config)
    size = getattr(seen, "image_size", 224)
    edge = size if isinstance(size, int) else size[0] if isinstance(size, list | tuple) else 224
    picture = torch.randn(1, getattr(seen, "num_channels", 3), min(edge, 384), min(edge, 384))
    main = model.main_input_name
    alone = {
        "input_ids": [ids],
        "pixel_values": [picture],
        "input_values": [torch.randn(1, 16000), torch.randn(1, 1, 16000), torch.randn(1, 1024, 128)],
        "input_features": [torch.randn(1, 200, 80), torch.randn(1, 80, 3000)],
        "pixel_values_videos": [torch.randn(1, 4, 3, 224, 224)],
        "past_values": [
            torch.randn(1, getattr(config, "context_length", 32), getattr(config, "num_input_channels", 1))
        ],
    }
    for x in alone.get(main, []) if isinstance(main, str) else []:
        yield {main: x}
        for other, y in (("decoder_input_ids", ids), ("pixel_values", picture), ("input_ids", ids)):
            if other != main:
                yield {main: x, other: y}


class Flat(torch.nn.Module):  # type: ignore[misc]
    """A model as a function of tensors, which returns its first tensors."""

    def __init__(self, model: Any, names: list[str]) -> None:
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *given: Any) -> Any:
        """Returns the first results."""
        made = self.model(**dict(zip(self.names, given, strict=True)))
        return tuple(_tensors(made.to_tuple() if hasattr(made, "to_tuple") else made)[:MOST_OUTPUTS])


def _tensors(made: Any) -> list[Any]:
    if isinstance(made, torch.Tensor):
        return [made]
    return [t for part in made for t in _tensors(part)] if isinstance(made, tuple | list) else []


def exported(name: str) -> tuple[Any, Any, tuple[Any, ...]]:
    """Returns an exported program, its module, and its inputs; raises `LeftOut` for what PyTorch does not run or export."""
    model, config = built(name)
    model.set_attn_implementation("eager")
    told = "its inputs are not tried here"
    for given in inputs_to_try(model, config):
        module = Flat(model, list(given))
        try:
            with torch.no_grad():
                module(*given.values())
                return torch.export.export(module, tuple(given.values()), strict=False), module, tuple(given.values())
        except Exception as error:  # of whatever kind: it is PyTorch's, or the package's
            told = _told(error)
    raise LeftOut(told)


def compare(name: str) -> str:
    """Returns a line about an architecture; raises `AssertionError` where Weft disagrees, and its errors where it fails."""
    torch.manual_seed(0)
    program, module, given = exported(name)
    with torch.no_grad():
        wanted = [t.numpy() for t in module(*given)]
    start = time.perf_counter()
    model = weft.compile(program, threads=1)
    seconds = time.perf_counter() - start
    if len(model.inputs) > len(given):
        return f"compiled in {seconds:.1f} s; it draws random numbers"
    found = model.run([np.asarray(x) for x in given])
    error = difference(found, wanted)
    if error > TOLERANCE and own_error(module, given, wanted) > error / UNSTABLE:
        return f"compiled in {seconds:.1f} s; its own results in float64 are others"
    assert error <= TOLERANCE, f"the results differ by {error:.1e}"
    return f"agrees within {error:.1e}, compiled in {seconds:.1f} s"


def difference(found: Sequence[Any], wanted: Sequence[Any]) -> float:
    """Returns the largest difference, of the largest element of its tensor; raises `AssertionError` for other shapes or NaNs."""
    worst = 0.0
    for y, x in zip(found, wanted, strict=True):
        assert y.shape == x.shape, f"{y.shape} in the place of {x.shape}"
        assert np.array_equal(np.isnan(y), np.isnan(x)), "there are NaNs in other places"
        largest = float(np.nanmax(np.abs(x), initial=0)) or 1.0
        worst = max(worst, float(np.nanmax(np.abs(np.subtract(y, x, dtype=np.float64)), initial=0)) / largest)
    return worst


def own_error(module: Any, given: Sequence[Any], wanted: Sequence[Any]) -> float:
    """Returns how far PyTorch's results are from its own in float64; 0 if it can't compute them."""
    try:
        with torch.no_grad():
            exact = module.double()(*[x.double() if x.is_floating_point() else x for x in given])
        return difference([t.numpy() for t in exact], wanted)
    except Exception:  # of whatever kind: it is PyTorch's, or the package's
        return 0.0


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:120] if str(error).strip() else ''}"


def alone(name: str) -> int:
    """Tries one architecture in this process, and prints a line; returns 1 where Weft fails."""
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    try:
        print(f"{name}: {compare(name)}")
    except LeftOut as error:
        print(f"{name}: left out, {error}")
    except Exception as error:
        print(f"{name}: FAILS, {type(error).__name__}: {error}")
        return 1
    return 0


def main() -> int:
    """Tries the architectures asked for, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    names = asked.names or random.sample(sorted(MODEL_MAPPING_NAMES), len(MODEL_MAPPING_NAMES))
    if asked.alone:
        return max([alone(name) for name in names])
    failed = 0
    for name in names:
        command = [sys.executable, "-m", "tests.frontends.torch.every_architecture", name, "--alone"]
        try:
            done = subprocess.run(command, timeout=SECONDS, capture_output=True, text=True, check=False)
            line = (done.stdout.strip().splitlines() or [f"{name}: FAILS, it ends with status {done.returncode}"])[-1]
        except subprocess.TimeoutExpired:
            line = f"{name}: FAILS, it takes more than {SECONDS} seconds"
        print(line, flush=True)
        failed += "FAILS" in line
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
