"""Functions that JAX exports for sizes that are not known, interpreted for some, and compared with what JAX computes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
from jax import export
from tests.frontends.jax.symbolic_functions import FUNCTIONS, SIZES, X
from tests.frontends.jax.test_operations import check

import weft
from weft.frontends.dispatch import to_graph


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_equals_jax(name: str) -> None:
    function = jax.jit(FUNCTIONS[name])
    exported = export.export(function)(*export.symbolic_args_specs((X,), SIZES))
    check(exported, [X], [np.asarray(v) for v in jax.tree.leaves(function(X))])


def test_sizes_that_break_a_constraint_are_told() -> None:
    exported = export.export(jax.jit(lambda x: x * 2))(*export.symbolic_args_specs((X,), "2 * n, 4, 5"))
    with pytest.raises(weft.ModelError, match="Division had remainder 1 when computing the value of 'n'"):
        to_graph(exported, {"arg0": (3, 4, 5)})
    assert to_graph(exported, {"arg0": (6, 4, 5)}).inputs[0].static_shape == (6, 4, 5)


def test_sizes_of_one_name_are_one_size_of_the_graph() -> None:
    specs = export.symbolic_args_specs((X, X[:, 0]), ("b, n, 5", "b, 5"))
    exported = export.export(jax.jit(lambda x, y: x * y[:, None] + jax.numpy.cumsum(y, 0)[:, None]))(*specs)
    model = weft.compile(exported)
    assert [i.shape for i in model.inputs] == [("arg0_dim0", "arg0_dim1", 5), ("arg0_dim0", 5)]
    given = [X, X[:, 1]]
    check(exported, given, [np.asarray(given[0] * given[1][:, None] + np.cumsum(given[1], 0)[:, None])])


def test_windows_of_symbolic_sizes_that_are_no_running_sums() -> None:
    exported = export.export(jax.jit(lambda x: jax.lax.cummax(x, 1)))(*export.symbolic_args_specs((X,), SIZES))
    with pytest.raises(weft.ModelError, match="windows of symbolic sizes, other than running sums and products"):
        to_graph(exported)
