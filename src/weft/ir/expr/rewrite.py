"""The one rewriting engine: bottom-up over any nodes, without recursion, with a memo keyed by identity.

`Rules` holds rewrites by node type; `rewrite` applies them to a fixed point, `map_nodes` once to each node.
Nothing is rebuilt where nothing changes, so an untouched sub-tree is returned as the very same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, cast

from weft.ir.expr.base import Expr, Var
from weft.ir.expr.node import Node

N = TypeVar("N", bound=Node)
Rule = Callable[[Any], "Node | None"]
R = TypeVar("R", bound=Rule)


class Rules:
    """An ordered table of rewrites by exact node type; each returns a new node, or None where it does not apply."""

    def __init__(self) -> None:
        self.table: dict[type[Node], list[Rule]] = {}

    def on(self, *types: type[Node]) -> Callable[[R], R]:
        """Registers the decorated function for nodes of *types*."""

        def add(rule: R) -> R:
            for t in types:
                self.table.setdefault(t, []).append(rule)
            return rule

        return add

    def once(self, n: Node) -> Node | None:
        """Returns the first rewrite of *n* that changes it, or None."""
        for rule in self.table.get(type(n), ()):
            new = rule(n)
            if new is not None and new is not n:
                return new
        return None


def rewrite(root: N, rules: Rules, *, fuel: int = 1_000_000, memo: dict[Node, Node] | None = None) -> N:
    """Rewrites *root* bottom-up until no rule applies to any node.

    *memo* may be kept between calls with the same rules. Raises `RuntimeError` if the rules do not settle within
    *fuel* steps.
    """
    done: dict[Node, Node] = {} if memo is None else memo
    stack: list[tuple[Node, Node, bool]] = [(root, root, False)]  # (node asked for, its present form, children done?)
    while stack:
        asked, now, ready = stack.pop()
        if asked in done:
            continue
        if now is not asked and now in done:
            done[asked] = done[now]
            continue
        kids = now.children()
        if not ready and (todo := [k for k in kids if k not in done]):
            stack.append((asked, now, True))
            stack += [(k, k, False) for k in todo]
            continue
        new_kids = tuple([done[k] for k in kids])
        new = now if new_kids == kids else now.rebuild(new_kids)  # nodes are equal only to themselves
        hit = rules.once(new)
        if hit is None:
            done[asked] = done[now] = done[new] = new
        elif (fuel := fuel - 1) < 0:
            raise RuntimeError(f"rewriting did not settle: the last step made a {type(hit).__name__}")
        else:
            stack.append((asked, hit, False))
            if now is not asked:
                stack.append((now, hit, False))
    return cast(N, done[root])


def map_nodes(root: N, change: Callable[[Node], Node | None] | None, *, memo: dict[Node, Node] | None = None) -> N:
    """Rebuilds *root* bottom-up, passing each node (with its new children) once to *change*; None keeps the node.

    The walk does not descend into nodes that *memo* holds already; where these are all that changes, *change* is None itself.
    """
    done: dict[Node, Node] = {} if memo is None else memo
    stack: list[Node] = [root]
    while stack:
        n = stack[-1]
        if n in done:
            stack.pop()
            continue
        kids = n.children()
        for k in kids:  # no list comprehension: its call would take longer than the loop
            if k not in done:
                stack.append(k)
        if stack[-1] is not n:
            continue
        stack.pop()
        new = n
        for k in kids:
            if done[k] is not k:
                new = n.rebuild([done[k] for k in kids])
                break
        changed = change(new) if change is not None else None
        done[n] = new if changed is None else changed
    return cast(N, done[root])


def substitute(root: N, values: Mapping[Var, Expr]) -> N:
    """Replaces the variables that are keys of *values*; binding sites are left alone, so only rename free variables."""
    if not values:
        return root
    if isinstance(root, Expr) and values.keys().isdisjoint(_variables_of(root)) and all(type(v) is Var for v in values):
        return root  # kinds of variables of other layers are not among those that nodes remember
    memo: dict[Node, Node] = {v: e for v, e in values.items()}  # noqa: C416  (widens the types)
    return map_nodes(root, None, memo=memo)


def post_order(root: Node) -> Iterator[Node]:
    """Yields each distinct node under *root* once, children first."""
    seen: set[Node] = set()
    stack: list[Node | None] = [root]  # None: the node before it is to be yielded, after its children
    while stack:
        n = stack.pop()
        if n is None:
            yield stack.pop()  # type: ignore[misc]
        elif n not in seen:
            seen.add(n)
            kids = n.children()
            if kids:
                stack.append(n)
                stack.append(None)
                stack += kids[::-1]
            else:
                yield n


def is_small(root: Node, most: int) -> bool:
    """Answers whether *root* has at most *most* nodes as a tree, with shared nodes repeated: there may be exponentially many."""
    stack, count = [root], 0
    while stack and count <= most:
        count += 1
        stack += stack.pop().children()
    return count <= most


def free_vars(root: Expr) -> list[Var]:
    """Returns the variables of an expression, in the order of first use; each node remembers its own."""
    return list(_variables_of(root))


def mentions(root: Expr, v: Var) -> bool:
    """Tells whether *v* is among the variables of an expression."""
    return v in _variables_of(root)


def _variables_of(root: Expr) -> tuple[Var, ...]:
    if type(root) is Var:
        return (root,)
    found: tuple[Var, ...] | None = getattr(root, "variables", None)
    return _find_variables(root) if found is None else found


def _find_variables(root: Node) -> tuple[Var, ...]:
    """Returns the variables of *root*, and caches those of each node under it."""
    stack: list[Node] = [root]
    while stack:
        n = stack[-1]
        kids = n.children()
        used: tuple[Var, ...] | dict[Var, None] = ()
        for k in kids:
            variables = (k,) if type(k) is Var else getattr(k, "variables", None)
            if variables is None:
                stack.append(k)
            elif not used:
                used = variables
            elif variables is not used:
                used = dict.fromkeys((*used, *variables))
        if stack[-1] is n:
            _remember(n, tuple(used))
            stack.pop()
    found: tuple[Var, ...] = root.variables  # type: ignore[attr-defined]
    return found


_remember = Node.variables.__set__  # type: ignore[attr-defined]  # nodes are immutable but for cached answers
