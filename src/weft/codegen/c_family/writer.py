"""The state of one function while it is written: its lines, the names in it, and the values that are known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from weft.codegen.c_family.c_types import identifier, scalar_type
from weft.codegen.c_family.dialect import Dialect
from weft.codegen.c_family.vector_words import VectorWords
from weft.ir import (
    INDEX,
    And,
    Cast,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Or,
    Ramp,
    Reinterpret,
    Select,
    TruncDiv,
    TruncMod,
    Var,
    post_order,
)
from weft.loop import Buffer, Function, Load
from weft.support.dtypes import DType, i32
from weft.support.errors import InputError, LoweringError
from weft.support.unique_names import UniqueNames
from weft.targets import Target


@dataclass(frozen=True)
class Vector:
    """A value of a vector type."""

    text: str


@dataclass(frozen=True)
class Mask:
    """A vector of bools as GCC and OpenCL C compare vectors: integers of so many bits, all ones or all zeros."""

    text: str
    bits: int


Value: TypeAlias = "str | tuple[str, ...] | Vector | Mask"
"""An expression in C: a scalar, the scalars of a vector's lanes, or a vector as a whole."""

LONGEST: Final = 100
"""Characters of an expression beyond which it gets a name."""

_WORD: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass
class Needs:
    """The declarations that a program needs at the head of its file: helpers, vector types, and the header for roots."""

    helpers: set[str] = field(default_factory=set)
    vectors: set[str] = field(default_factory=set)
    includes: set[str] = field(default_factory=set)


class Writer:
    """Writes the body of one function; expressions used twice, and long ones, get names.

    `narrows` tells that indices are computed in 32 bits where they fit (`lower.grid.narrow_indices`); `narrow` are the variables
    of 64 bits that are of 32 in the text. `dynamic_bytes` are those of a block's memory that a launch has to ask for.
    """

    def __init__(self, target: Target, function: str, needs: Needs, dialect: Dialect) -> None:
        self.target = target
        self.dialect = dialect
        self.function = function
        self.needs = needs
        self.lines: list[str] = []
        self.depth = 1
        self.uses: Counter[Expr] = Counter()
        self.known: list[dict[Expr, Value]] = [{}]
        self.names: dict[Var | Buffer, str] = {}
        self.unique = UniqueNames(first=2)
        self.declared: dict[int, str] = {}
        self.masks: list[tuple[str, ...]] = []
        self.open_allocs: list[str] = []
        self.asserts: set[tuple[int, str]] = set()
        self.tasks: Mapping[str, Function] = {}
        self.calls: set[str] = set()
        self.frame_bytes = 0
        self.dynamic_bytes = 0
        self.has_puns = False
        self.narrows = target.grid is not None and target.grid.index_bits == i32.bits
        self.narrow: set[Var] = set()
        self._traps: dict[Expr, bool] = {}
        self._indices: dict[Expr, bool] = {}

    def error(self, message: str, hint: str = "lower the program for this target first") -> LoweringError:
        """Returns an error about this function."""
        return LoweringError(message, where=self.function, hint=hint)

    def refusal(self, message: str, hint: str | None = None) -> InputError:
        """Returns an error about a feature that the target lacks; of a device, the processor may run what it can't."""
        beside = f', or for "{self.target.name}+cpu"' if self.target.kind == "grid" else ""
        told = f"compile this model for a cpu target{beside}" if hint is None else hint
        return InputError(message, where=self.function, hint=told)

    def line(self, text: str) -> None:
        """Adds a line at the current depth."""
        self.lines.append("  " * self.depth + text)

    @contextmanager
    def suite(self, head: str, end: str = "}") -> Iterator[None]:
        """Writes the lines made inside in braces after *head*; values computed there are forgotten after it."""
        self.line(f"{head} {{" if head else "{")
        self.depth += 1
        with self.scope():
            yield
        self.depth -= 1
        self.line(end)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forgets at its end the values that were computed inside."""
        self.known.append({})
        yield
        self.known.pop()

    def fresh(self, like: str) -> str:
        """Returns a new C name like *like*."""
        base = identifier(like)
        refused = base in self.dialect.reserved or base.startswith(("weft_", "fn_")) or base[:1].isdigit()
        return self.unique.of(f"{base}_" if refused else base or "x")

    def check_type(self, dtype: DType) -> None:
        """Raises `InputError` for a type that the target does not compute with."""
        if dtype.element.name in self.target.isa.missing_types:
            raise self.refusal(f"{self.dialect.name} has no {dtype.element}")

    def declare(self, thing: Var | Buffer) -> str:
        """Returns the new name of a variable or a buffer."""
        self.check_type(thing.dtype)
        made = self.names[thing] = self.fresh(thing.name)
        return made

    def name(self, thing: Var | Buffer) -> str:
        """Returns the name of a variable or buffer that was declared; raises `LoweringError` for another."""
        if thing not in self.names:
            raise self.error(f"{thing.name} is not in scope", hint="verify the program first")
        return self.names[thing]

    def local(self, name: str, declaration: str) -> None:
        """Writes the declaration of a name, which is left out if nothing uses it."""
        self.declared[len(self.lines)] = name
        self.line(declaration)

    def body(self) -> str:
        """Returns the lines without unused declarations, of which C compilers warn."""
        used: set[str] = set()
        kept: list[str] = []
        for number, text in reversed(list(enumerate(self.lines))):
            if self.declared.get(number, "") in used or number not in self.declared:
                used.update(_WORD.findall(text))
                kept.append(text)
        return "\n".join(reversed(kept))

    def helper(self, name: str, dtype: DType | None = None) -> str:
        """Returns the C name of a helper, and has it written."""
        need = name if dtype is None else f"{name}_{dtype.element.name}"
        self.needs.helpers.add(need)
        return f"weft_{need}"

    def temporary(self, dtype: DType, text: str) -> str:
        """Gives a scalar value a name, unless it is one, or a number."""
        if text.replace("_", "").isalnum():
            return text
        name = self.fresh("t")
        self.local(name, self.dialect.constant(scalar_type(dtype), name, text))
        return name

    def find(self, e: Expr) -> Value | None:
        """Returns the value of *e*, if it is known here."""
        return next((scope[e] for scope in reversed(self.known) if e in scope), None)

    def value(self, root: Expr) -> Value:
        """Returns *root* as C, after writing the lines that it needs."""
        self._count(root)
        stack = [root]
        while stack:
            e = stack[-1]
            if self.find(e) is not None:
                stack.pop()
                continue
            todo = [k for k in strict_operands(e) if self.find(k) is None]
            if todo:
                stack += reversed(todo)
                continue
            stack.pop()
            self.known[-1][e] = self._kept(e, self._written(e))
        found = self.find(root)
        assert found is not None
        return found

    def _written(self, e: Expr) -> Value:
        self.check_type(e.dtype)
        writers = WRITERS if self.dialect.expressions is None else self.dialect.expressions
        writer = writers.get(type(e))
        if writer is None:
            raise self.error(f"{type(e).__name__} has no translation to {self.dialect.name}")
        return writer(self, e)

    def _kept(self, e: Expr, made: Value) -> Value:
        """Names a value that is used again, or long."""
        often = self.uses[e] > 1
        if isinstance(made, str):
            return self.temporary(e.dtype, made) if often or len(made) > LONGEST else made
        if isinstance(made, tuple):
            return tuple([self.temporary(e.dtype, x) if often or len(x) > LONGEST else x for x in made])
        if not often and len(made.text) <= LONGEST:
            return made
        return self.named(e.dtype, made)

    def named(self, dtype: DType, value: Vector | Mask) -> Vector | Mask:
        """Gives a whole vector a name."""
        if value.text.replace("_", "").isalnum():
            return value
        kind = self.vector_type(dtype if isinstance(value, Vector) else DType("int", value.bits, dtype.lanes))
        name = self.fresh("v")
        self.local(name, f"const {kind} {name} = {value.text};")
        return Vector(name) if isinstance(value, Vector) else Mask(name, value.bits)

    def vector_type(self, dtype: DType) -> str:
        """Returns the name of a vector type, and has it declared."""
        self.needs.vectors.add(dtype.name)
        return self.words.type_name(dtype)

    @property
    def words(self) -> VectorWords:
        """The language's words for vectors; only for one that has some."""
        assert self.dialect.vectors is not None
        return self.dialect.vectors

    def _count(self, root: Expr) -> None:
        self.uses[root] += 1
        for e in post_order(root):
            if isinstance(e, Expr):
                self.uses.update([k for k in e.children() if isinstance(k, Expr)])

    def scalar(self, e: Expr) -> str:
        """Returns a scalar expression as C."""
        made = self.value(e)
        if not isinstance(made, str):
            raise self.error(f"a vector of type {e.dtype} is where a scalar is wanted")
        return made

    def atom(self, e: Expr) -> str:
        """Returns a scalar expression as a name or a number, to be written more than once."""
        made = self.known[-1][e] = self.temporary(e.dtype, self.scalar(e))
        return made

    def is_index(self, e: Expr) -> bool:
        """Tells whether *e* counts elements, so that it does not overflow: it is made of sizes and loops' variables.

        So are integers of 32 bits that are made of such alone, where indices are narrowed.
        """
        if e.dtype is not INDEX and not (self.narrows and e.dtype is i32):
            return False
        known = self._indices.get(e)
        if known is None:
            parts = [k for k in e.children() if isinstance(k, Expr)]
            is_data = _is_data(e) and not (self.narrows and isinstance(e, Cast))
            known = self._indices[e] = not is_data and all(map(self.is_index, parts))
        return known

    def note_index(self, var: Var, value: Expr) -> None:
        """Notes whether a variable that is bound to *value* counts elements."""
        self._indices[var] = self.is_index(value)

    def may_trap(self, e: Expr) -> bool:
        """Tells whether computing *e* speculatively may fault: it loads, or divides."""
        known = self._traps.get(e)
        if known is None:
            known = self._traps[e] = any(_traps(n) for n in post_order(e))
        return known


def _is_data(n: object) -> bool:
    return isinstance(n, (Load, Cast, Reinterpret))


def _traps(n: object) -> bool:
    if isinstance(n, (FloorDiv, FloorMod, TruncDiv, TruncMod)):
        return not isinstance(n.b, Const)
    return isinstance(n, Load)


def strict_operands(e: Expr) -> tuple[Expr, ...]:
    """Returns the operands of *e* that are evaluated in any case."""
    if isinstance(e, Select):
        return (e.cond,)
    if isinstance(e, And | Or):
        return (e.a,)
    if isinstance(e, Load):  # of neighbours, where the first is will do
        return tuple([i.base if isinstance(i, Ramp) else i for i in e.indices])
    return tuple([k for k in e.children() if isinstance(k, Expr)])


Handler: TypeAlias = Callable[[Writer, Any], Value]
H = TypeVar("H", bound=Handler)
WRITERS: Final[dict[type[Expr], Handler]] = {}
"""The writer of each kind of expression, scalars and vectors alike."""


def writes(*types: type[Expr]) -> Callable[[H], H]:
    """Registers the writer of expressions of some *types*."""

    def add(handler: H) -> H:
        WRITERS.update(dict.fromkeys(types, handler))
        return handler

    return add
