"""The state of emitting one function, and the evaluation of expressions: an explicit stack, one handler per node type.

A handler is registered with `@emits(NodeType)`, is given the values of the node's children, and returns the node's value.
A lazy handler gets no operands if the node might fault, or has an operand that is rarely needed: it evaluates operands itself,
under their conditions. Values are cached by node identity for as long as the variables that they mention stay bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, TypeVar

from weft.codegen.llvm.core.affine_operands import Affine, Lanes, Operand
from weft.codegen.llvm.core.ir_builder import Builder
from weft.codegen.llvm.core.ir_types import mangled, register_type
from weft.codegen.llvm.core.register_values import RegisterValues
from weft.codegen.llvm.core.symbolic_indices import as_affine, sum_of
from weft.ir import DIVISIONS, Apply, Broadcast, Const, Expr, Node, Select, Var
from weft.loop import Address, Buffer, For, Load
from weft.support.dtypes import DType
from weft.support.errors import LoweringError
from weft.targets import Target

Handler = Callable[..., Operand]
H = TypeVar("H", bound=Handler)
_Plan = tuple[Handler, tuple[Expr, ...], bool]  # a node's handler, its operands, and whether it stays where it is used
HANDLERS: Final[dict[type[Node], Handler]] = {}
LAZY: Final[set[type[Node]]] = set()


def emits(*types: type[Node], lazy: bool = False) -> Callable[[H], H]:
    """Registers the decorated function as the handler of nodes of *types*; see the module's docstring for *lazy*."""

    def add(handler: H) -> H:
        for t in types:
            HANDLERS[t] = handler
            if lazy:
                LAZY.add(t)
        return handler

    return add


@dataclass(frozen=True, slots=True)
class Memory:
    """The location of a buffer: *offset* bytes from the pointer *base*; two buffers of different *root* never alias."""

    base: str
    root: int
    offset: Affine
    align: int = 1


@dataclass(frozen=True)
class Signature:
    """The signature of a function: its symbol, the LLVM types of its parameters, and whether it is a task."""

    symbol: str
    types: tuple[str, ...]
    _: KW_ONLY
    task: bool


class _Scope:
    """A scope of bindings; a class rather than a generator, as each store opens one."""

    __slots__ = ("scopes", "values")

    def __init__(self, values: dict[Expr, tuple[Operand, int]], scopes: list[list[Expr]]) -> None:
        self.values, self.scopes = values, scopes

    def __enter__(self) -> None:
        self.scopes.append([])

    def __exit__(self, *raised: object) -> None:
        for e in self.scopes.pop():
            self.values.pop(e, None)


class Emitter:
    """Emits one function of a program for one target."""

    def __init__(self, target: Target, function: str, signatures: Mapping[str, Signature]) -> None:
        self.target = target
        self.function = function
        self.signatures = signatures
        self.build = Builder()
        self.buffers: dict[Buffer, Memory] = {}
        self.registers = RegisterValues(self.build)
        self.numbers_registers: dict[For, bool] = {}  # loops that were asked whether their variable does
        self.stored: dict[For, frozenset[Buffer]] = {}  # the register buffers stored to in loops that were asked
        self.mask: str | None = None  # of the vector lanes whose guarded loads may run
        self.mask_lanes = 1
        self.shuffle_levels: dict[str, int] = {}  # how many shuffles a value comes from since the last fence
        self.tiles: dict[int, str] = {}  # the load that tile registers of factors hold, the one used last at the end
        self.globals: dict[str, str] = {}  # declarations and constants the function needs, by symbol
        self.asserts: set[tuple[int, str]] = set()
        self.frame_bytes = 0
        self.open_allocs: list[str] = []
        self._values: dict[Expr, tuple[Operand, int]] = {}
        self._scopes: list[list[Expr]] = [[]]
        self._plans: dict[Expr, _Plan] = {}
        self._traps: dict[Node, bool] = {}
        self._roots = 0

    def error(self, message: str, hint: str | None = None) -> LoweringError:
        """Returns the error for a program that cannot be emitted."""
        return LoweringError(message, where=f"function {self.function}", hint=hint)

    def new_root(self) -> int:
        """Returns a new number for memory that aliases no other."""
        self._roots += 1
        return self._roots

    # -- scopes ------------------------------------------------------------------------------------------------------

    def scope(self) -> _Scope:
        """Returns a scope of bindings to be opened; values that depend on them are forgotten at its end."""
        return _Scope(self._values, self._scopes)

    def bind(self, var: Var, value: Operand) -> None:
        """Gives *var* a value in the innermost scope."""
        self._remember(var, value, len(self._scopes) - 1)

    def _remember(self, e: Expr, value: Operand, depth: int) -> None:
        self._values[e] = value, depth
        self._scopes[depth].append(e)

    @contextmanager
    def confined(self) -> Iterator[None]:
        """Keeps values evaluated inside in the innermost region, even if they could be hoisted, and forgets them at the end."""
        known, floor = len(self._values), self.build.floor
        self.build.floor = self.build.level
        with self.scope():
            yield
        self.build.floor = floor
        while len(self._values) > known:
            self._values.popitem()

    # -- evaluation --------------------------------------------------------------------------------------------------

    def knows(self, e: Expr) -> bool:
        """Tells whether the value of *e* has been emitted before, under any mask."""
        return e in self._values

    def value(self, root: Expr) -> Operand:
        """Returns the value of *root*, emitting the nodes that have no value yet."""
        values = self._values
        known = values.get(root)
        if known is not None:
            return known[0]
        plans = self._plans
        stack = [root]
        while stack:
            e = stack[-1]
            if e in values:
                stack.pop()
                continue
            plan = plans.get(e)
            if plan is None:
                plan = plans[e] = self._plan(e)
            handler, kids, stays = plan
            for k in kids:
                if k not in values:
                    stack.append(k)
            if stack[-1] is not e:
                continue
            stack.pop()
            operands: list[Operand] = []
            depth = 0
            for k in kids:
                operand, known_from = values[k]
                operands.append(operand)
                if known_from > depth:
                    depth = known_from
            self._remember(e, handler(self, e, *operands), len(self._scopes) - 1 if stays else depth)
        return values[root][0]

    def _plan(self, e: Expr) -> _Plan:
        """Returns how *e* is evaluated, wherever it is."""
        known = sum_of(e)
        if known is not None and not known.lanes:
            return known, known.terms, False
        handler = HANDLERS.get(type(e))
        if handler is None:
            raise self._no_handler(e)
        traps = self.may_trap(e)
        seldom = isinstance(e, Select) and is_unlikely(e.cond)
        kids: Any = () if seldom or (traps and type(e) in LAZY) else e.children()
        return handler, kids, traps or seldom or isinstance(e, Address) or is_watched(e)

    def _no_handler(self, e: Expr) -> LoweringError:
        if isinstance(e, Var):
            return self.error(f"the variable {e.name} is used but not bound")
        return self.error(f"{type(e).__name__} has no translation to LLVM")

    def text(self, e: Expr) -> str:
        """Returns the value of *e* as an LLVM operand."""
        return self.build.text(self.value(e))

    def typed(self, e: Expr) -> str:
        """Returns the value of *e* as an LLVM operand with its type before it."""
        return f"{register_type(e.dtype)} {self.text(e)}"

    def access_index(self, e: Expr) -> Operand:
        """Returns the value of the index *e* of an access; for a sum, the nodes of its terms alone are looked at."""
        known = sum_of(e)
        if known is None:
            return self.value(e)
        values = self._values
        base = known(self, e, *[values[t][0] if t in values else self.value(t) for t in known.terms])
        return Lanes(base, known.step, known.lanes) if known.lanes else base

    def index(self, e: Expr) -> Affine:
        """Returns the value of the scalar i64 *e* in symbolic form."""
        return as_affine(self.value(e))

    def intrinsic(self, name: str, dtype: DType, *operands: str) -> str:
        """Returns LLVM's pure intrinsic *name* of *operands*, which share one type with the result."""
        symbol, kind = f"@llvm.{name}.{mangled(dtype)}", register_type(dtype)
        self.globals[symbol] = f"declare {kind} {symbol}({', '.join([kind] * len(operands))})"
        return self.build.pure(f"call {kind} {symbol}({', '.join([f'{kind} {x}' for x in operands])})", *operands)

    def may_trap(self, root: Expr) -> bool:
        """Tells whether evaluating *root* may fault: it loads, or divides integers by a possible zero."""
        known = self._traps
        if root in known:
            return known[root]
        stack: list[Node] = [root]
        while stack:
            e = stack[-1]
            if e in known:
                stack.pop()
                continue
            kids = e.children()
            for k in kids:
                if k not in known:
                    stack.append(k)
            if stack[-1] is not e:
                continue
            stack.pop()
            known[e] = is_hazard(e) or any(known[k] for k in kids)
        return known[root]


def is_unlikely(cond: Expr) -> bool:
    """Tells whether *cond* is marked as `unlikely`."""
    return isinstance(cond, Apply) and cond.fn == "unlikely"


def is_watched(e: Expr) -> bool:
    """Tells whether evaluating *e* itself may report to the context: its value must not be reused where it has not run."""
    return isinstance(e, Apply) and e.fn == "watched"


def is_hazard(e: Node) -> bool:
    """Tells whether *e* itself may fault, its operands aside."""
    if isinstance(e, Load):
        return True
    return isinstance(e, DIVISIONS) and not constant_of(e.b)


def constant_of(e: Expr) -> int | None:
    """Returns the integer that *e* is known to be, in each lane, or None."""
    inner = e.value if isinstance(e, Broadcast) else e
    return int(inner.value) if isinstance(inner, Const) and not inner.dtype.is_float else None
