"""Has JAX print the texts of `texts/`, which tests damage: `python -m tests.frontends.jax.make_texts`."""

from __future__ import annotations

from pathlib import Path

import jax
from tests.frontends.jax.functions import CASES

NAMES = ("gathers", "pools", "scan", "sorting", "scatters", "cases")


def main() -> None:
    folder = Path(__file__).parent / "texts"
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        function, given = CASES[name]
        (folder / f"{name}.mlir").write_text(jax.jit(function).lower(*given).as_text())


if __name__ == "__main__":
    main()
