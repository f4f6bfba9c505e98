"""Writes one LLVM function as text: basic blocks, value numbering, and placement of instructions.

A *region* is code run under the same control: the function's body, a loop's body, a branch. Regions nest, and each instruction
is placed in the outermost region in which its operands are defined, at the end of that region's current block; it
dominates all that follows there. So loop-invariant code is never inside the loop, and equal instructions are written once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import gcd
from typing import Final

from weft.codegen.llvm.core.affine_operands import Affine, Lanes, Operand
from weft.codegen.llvm.core.ir_types import is_literal, splat, vector
from weft.support.dtypes import i64

SCALES: Final = (1, 2, 4, 8)
"""Factors of an index that an instruction's operand may have."""


@dataclass(slots=True)
class BasicBlock:
    """A labelled run of instructions and the terminator that ends it."""

    label: str
    lines: list[str] = field(default_factory=list)
    end: str = ""


@dataclass(slots=True)
class Region:
    """An open region: the block it is writing, and the instructions that are known in it, by their text."""

    block: BasicBlock
    known: dict[str, str] = field(default_factory=dict)
    loads: dict[int, dict[str, str]] = field(default_factory=dict)  # by root of the memory they read
    addresses: dict[tuple[object, ...], tuple[str, int]] = field(default_factory=dict)  # see `Builder.address`
    raised: dict[str, int] = field(default_factory=dict)  # levels of names outside of it: see `Builder.raise_level`


class Builder:
    """The text of one function's body as it grows; see the module's docstring for where instructions go."""

    def __init__(self) -> None:
        self.entry = BasicBlock("entry")
        self.blocks = [self.entry]
        self.regions = [Region(self.entry)]
        self.allocas: list[str] = []
        self.levels: dict[str, int] = {}
        self.nonnegative: set[str] = set()
        self.moving: dict[str, dict[str, tuple[str, str, int]]] = {}  # by open loops' counters: see `address`
        self.floor = 0  # the outermost region that pure instructions are placed in
        self._names = 0
        self._labels = 0

    @property
    def level(self) -> int:
        """The number of the innermost open region."""
        return len(self.regions) - 1

    @property
    def block(self) -> BasicBlock:
        """The block being written."""
        return self.regions[-1].block

    def fresh(self, level: int) -> str:
        """Returns a new SSA name, known from region *level* inwards."""
        self._names += 1
        name = f"%v{self._names}"
        if level:
            self.levels[name] = level
        return name

    def label(self, hint: str) -> str:
        """Returns a new block label."""
        self._labels += 1
        return f"{hint}.{self._labels}"

    def level_of(self, operands: tuple[str, ...]) -> int:
        """Returns the outermost region in which all *operands* are known."""
        levels, outermost = self.levels, 0
        for x in operands:
            level = levels.get(x, 0)
            if level > outermost:
                outermost = level
        return outermost

    def pure(self, text: str, *operands: str) -> str:
        """Returns the value of an instruction that may run anywhere; written once, as far out as *operands* allow."""
        return self.pure_at(self.level_of(operands), text)

    def pure_at(self, level: int, text: str) -> str:
        """Returns the value of an instruction, written once in region *level*."""
        region = self.regions[level]
        known = region.known.get(text)
        if known is None:
            if level < self.floor:
                return self.pure_at(self.floor, text)
            known = region.known[text] = self.fresh(level)
            region.block.lines.append(f"  {known} = {text}")
        return known

    def here(self, text: str) -> str:
        """Returns the value of an instruction that must run now, in the current block."""
        name = self.fresh(self.level)
        self.block.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Writes an instruction without a value."""
        self.block.lines.append(f"  {text}")

    def alloca(self, text: str) -> str:
        """Returns the address of memory in the function's frame."""
        name = self.fresh(0)
        self.allocas.append(f"  {name} = alloca {text}")
        return name

    def start(self, label: str) -> BasicBlock:
        """Begins a block in the innermost region."""
        made = BasicBlock(label)
        self.blocks.append(made)
        self.regions[-1].block = made
        return made

    @contextmanager
    def region(self, label: str) -> Iterator[BasicBlock]:
        """Opens a region that begins with a new block; after it, loads made before it are not to be reused."""
        made = BasicBlock(label)
        self.blocks.append(made)
        self.regions.append(Region(made))
        yield made
        self.levels.update(self.regions.pop().raised)
        self.regions[-1].loads.clear()

    def raise_level(self, name: str) -> None:
        """Has instructions with the operand *name* placed in the innermost region until that ends, and not before it."""
        level, known = self.level, self.levels.get(name, 0)
        if known < level:
            self.regions[-1].raised.setdefault(name, known)
            self.levels[name] = level

    def forget_loads(self, root: int | None = None) -> None:
        """Drops the remembered loads of one memory root, or of all, since a store may have changed it."""
        loads = self.regions[-1].loads
        if root is None:
            loads.clear()
        else:
            loads.pop(root, None)

    def text(self, value: Operand) -> str:
        """Returns *value* as an operand, computing it first where it is still symbolic."""
        if type(value) is str:
            return value
        if isinstance(value, Affine):
            return self.scalar(value)
        assert isinstance(value, Lanes)
        return self.lanes(value)

    def scalar(self, value: Affine, scale: int = 1) -> str:
        """Returns the i64 `scale * value`, its terms added from the outermost loop inwards."""
        total = ""
        for name in self.outermost_first(value):
            term = self.scaled(name, value.terms[name] * scale)
            total = self._sum(total, term)
        constant = value.constant * scale
        if not total:
            return str(constant)
        return self._sum(total, str(constant)) if constant else total

    def outermost_first(self, value: Affine) -> list[str]:
        """Returns the names in *value*, those known furthest out first, so that partial sums are loop invariant."""
        return sorted(value.terms, key=lambda n: (self.levels.get(n, 0), n))

    def scaled(self, name: str, factor: int) -> str:
        """Returns `name * factor`."""
        made = name if factor == 1 else self.pure(f"mul i64 {name}, {factor}", name)
        if factor > 0 and name in self.nonnegative:
            self.nonnegative.add(made)
        return made

    def address(self, base: str, offset: Affine) -> tuple[str, int]:
        """Returns the address `base + offset` but for the constant, and the largest number that divides every term of *offset*.

        The part that each loop adds is computed in that loop. `moving` has, for its counter, the pointers that thus move by more
        than an operand's scale: by the line that computes it, the pointer, its first value if the loop starts at 0, and the step.
        """
        terms = offset.terms
        if not terms:
            return base, 0
        known = self.regions[self.level_of((base, *terms))].addresses
        key = (base, *terms.items())
        found = known.get(key)
        if found is None:
            made = base
            for name in self.outermost_first(offset):
                made = self._advanced(made, name, terms[name])
            found = known[key] = made, gcd(*terms.values())
        return found

    def _advanced(self, base: str, name: str, factor: int) -> str:
        """Returns the address *base* + *name* * *factor*."""
        step = self.scaled(name, factor)
        text = f"getelementptr i8, ptr {base}, i64 {step}"
        made = self.pure(text, base, step)
        moving = self.moving.get(name)
        if moving is not None and factor not in SCALES and self.levels.get(base, 0) < self.levels[name]:
            moving[f"  {made} = {text}"] = made, base, factor
        return made

    def _sum(self, total: str, term: str) -> str:
        return self.pure(f"add i64 {total}, {term}", total, term) if total else term

    def lanes(self, value: Lanes) -> str:
        """Returns the i64 vector *value*."""
        wide = i64.with_lanes(value.lanes)
        kind = f"<{value.lanes} x i64>"
        if value.base.is_constant and value.step.is_constant:
            numbers = [str(value.base.constant + i * value.step.constant) for i in range(value.lanes)]
            made = splat(numbers[0], wide) if value.is_uniform else vector(numbers, wide)
        else:
            made = self.broadcast(self.scalar(value.base), "i64", value.lanes)
            if not (value.step.is_constant and value.step.constant == 0):
                made = self._add_ramp(made, value.step, kind, value.lanes)
        if value.rest is None:
            return made
        return self.pure(f"add {kind} {value.rest}, {made}", value.rest, made)

    def _add_ramp(self, made: str, step: Affine, kind: str, count: int) -> str:
        wide = i64.with_lanes(count)
        if step.is_constant:
            ramp = vector([str(i * step.constant) for i in range(count)], wide)
        else:
            iota = vector([str(i) for i in range(count)], wide)
            factor = self.broadcast(self.scalar(step), "i64", count)
            ramp = self.pure(f"mul {kind} {factor}, {iota}", factor)
        return self.pure(f"add {kind} {made}, {ramp}", made, ramp)

    def broadcast(self, value: str, element: str, count: int) -> str:
        """Returns a vector of *count* lanes with the scalar operand *value* of LLVM type *element* in each."""
        if count == 1:
            return value
        if is_literal(value):
            return f"splat ({element} {value})"
        kind = f"<{count} x {element}>"
        first = self.pure(f"insertelement {kind} poison, {element} {value}, i64 0", value)
        return self.pure(f"shufflevector {kind} {first}, {kind} poison, <{count} x i32> zeroinitializer", first)

    def is_nonnegative(self, value: Affine) -> bool:
        """Tells whether *value* is known to be at least zero."""
        if value.constant < 0 or not value.terms:
            return value.constant >= 0
        return all(c > 0 and n in self.nonnegative for n, c in value.terms.items())

    def body(self) -> str:
        """Returns the text of all blocks, the frame's memory first."""
        out: list[str] = []
        for b in self.blocks:
            out.append(f"{b.label}:")
            if b is self.entry:
                out += self.allocas
            out += b.lines
            out.append(f"  {b.end}")
        return "\n".join(out)
