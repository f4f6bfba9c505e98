"""Has JAX print the texts of `texts/`, which tests damage: `python -m tests.frontends.jax.make_texts`."""

from __future__ import annotations

import re
from pathlib import Path

import jax
from tests.frontends.jax import complex_functions
from tests.frontends.jax.functions import CASES, Case
from tests.frontends.jax.symbolic_functions import FUNCTIONS, SIZES, X

_LOCATION = re.compile(r' loc\((#\w+|unknown|"[^"]*"(\(#\w+\))?)\)')
NAMES = ("gathers", "pools", "scan", "sorting", "scatters", "cases", "gradients of pools", "random bits")
COMPLEX = ("products", "transforms", "constants", "loop")


def main() -> None:
    folder = Path(__file__).parent / "texts"
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        write(folder / f"{name.replace(' ', '_')}.mlir", CASES[name])
    for name in COMPLEX:
        write(folder / f"complex_{name}.mlir", complex_functions.CASES[name])
    specs = jax.export.symbolic_args_specs((X,), SIZES)
    exported = jax.export.export(jax.jit(FUNCTIONS["running along a size"]))(*specs)
    lines = [v for v in exported.mlir_module().splitlines() if not v.startswith("#loc")]
    (folder / "symbolic_running.mlir").write_text("".join(f"{_LOCATION.sub('', v)}\n" for v in lines))


def write(path: Path, case: Case) -> None:
    function, given = case
    path.write_text(jax.jit(function).lower(*given).as_text())


if __name__ == "__main__":
    main()
