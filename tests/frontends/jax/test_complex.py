"""Complex numbers in functions of JAX are pairs of real tensors; outside they are [..., 2]."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from tests.frontends.jax.complex_functions import CASES, Z
from tests.frontends.jax.functions import Array
from tests.frontends.jax.test_operations import check

import weft
from weft.frontends.dispatch import to_graph


def outside(value: Array) -> Array:
    return np.stack([value.real, value.imag], -1) if np.iscomplexobj(value) else value


@pytest.mark.parametrize("name", CASES)
def test_complex_numbers_equal_jax(name: str) -> None:
    function, given = CASES[name]
    jitted = jax.jit(function, keep_unused=True)
    wanted = [outside(np.asarray(v)) for v in jax.tree.leaves(jitted(*given))]
    check(jitted.lower(*given), [outside(v) for v in given], wanted)


def test_weights_may_be_complex() -> None:
    compiled = weft.from_jax(lambda x: jnp.real(x * jnp.asarray(Z)), Z.real)
    np.testing.assert_allclose(compiled(Z.real), Z.real * Z.real, rtol=1e-5, atol=1e-6)


def test_what_has_no_complex_form_is_named() -> None:
    with pytest.raises(weft.UnsupportedOperators, match=r"stablehlo\.complex tanh, 1 node"):
        to_graph(jax.jit(jnp.tanh).lower(Z))
