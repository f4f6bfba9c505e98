"""Functions that JAX exports as bytecode."""

from __future__ import annotations

import jax
from jax import export
from tests.frontends.fuzz.files import Files, one
from tests.frontends.jax.functions import NETWORKS


def bytecodes() -> list[Files]:
    """Returns the networks of the tests."""
    return [one(export.export(jax.jit(f))(*given).mlir_module_serialized, "f.bin") for f, given in NETWORKS.values()]
