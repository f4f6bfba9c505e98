"""`skip_zeros`: a sum leaves out the terms that a condition makes zero.

for i in range(0, 8):                                            for i in range(0, 8):
    for k in range(0, 3):                                ->          for k in range(0, 3):
        C[i] = C[i] + select(i + k < 8, X[i + k], 0) * W[k]              C[i] = select(i + k < 8, C[i] + X[i + k] * W[k], C[i])
"""

from __future__ import annotations

from weft.ir import Add, Cast, Expr, Mul, all_of, cast, conjuncts, select
from weft.loop import Function, Load, Store
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, refuse
from weft.schedule.cursors.tree import block_path, plain_store, replace, the_block
from weft.schedule.legality.sum_of_products import chooses_zero
from weft.schedule.rewriting.inlining import with_body


@primitive
def skip_zeros(fn: Function, block: BlockRef) -> tuple[Change, None]:
    """Runs the update of *block* only where no factor of the added product is the zero of a `select`.

    Legal for one update of the form `C = C + x`, x a product with such a factor, with a decomposed initialisation. A zero is
    skipped whatever it is multiplied by, infinity included.
    """
    path = block_path(fn, block)
    update = the_block(path)
    if update.init is not None:
        refuse(f"{update.name} starts its sums itself", update, "decompose the reduction first")
    store = plain_store(update)
    own = Load(store.buffer, store.indices)
    if not isinstance(store.value, Add) or store.value.a is not own:
        refuse(f"{update.name} is not a sum", update, "only terms of a sum can be left out")
    conditions: list[Expr] = []
    term = _without_zeros(store.value.b, conditions)
    if not conditions:
        refuse(f"no factor of what {update.name} adds is a select with zero", update, "inline what pads its input")
    inside = all_of(dict.fromkeys(c for cond in conditions for c in conjuncts(cond)))
    kept = Store(store.buffer, store.indices, select(inside, own + term, own), None)
    return Change(fn.with_body(replace(path, with_body(update, kept, None)))), None


def _without_zeros(e: Expr, conditions: list[Expr]) -> Expr:
    """Returns the product *e* where none of its factors is such a zero, and adds the conditions of that case to *conditions*."""
    if isinstance(e, Mul):
        return _without_zeros(e.a, conditions) * _without_zeros(e.b, conditions)
    if isinstance(e, Cast) and e.dtype.is_float:
        return cast(_without_zeros(e.a, conditions), e.dtype)
    if chooses_zero(e):
        conditions.append(e.cond)
        return _without_zeros(e.then, conditions)
    return e
