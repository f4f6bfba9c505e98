"""Regular expressions in RE2's syntax, compiled to the program that `native/hostops/regex.c` follows all ways of at once.

    a(b|c)*        0 SET a    1 SPLIT 2 6    2 SPLIT 3 5    3 SET b    4 JUMP 1    5 SET c ...

Constructs that no automaton matches (backreferences, looking around) RE2 has not, either. Not supported of RE2's: scripts
(`\\p{Greek}`) and `\\C`. Case is ignored by Unicode's simple mappings.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from weft.support.errors import ModelError

MATCH, JUMP, SPLIT, SET, ASSERT = range(5)
BEGIN, END, WORD_BOUNDARY, NO_WORD_BOUNDARY, LINE_BEGIN, LINE_END = range(6)
MOST_REPEATS: Final = 1000
MOST_INSTRUCTIONS: Final = 20_000
MOST_NESTED: Final = 200
_LAST: Final = sys.maxunicode

Ranges: TypeAlias = tuple[tuple[int, int], ...]
Code: TypeAlias = list[tuple[int, int, int]]
"""Instructions whose jumps are relative to their own place, so that code can be put together; sets are numbers of `sets`."""

_ESCAPES: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_DIGITS: Final = ((48, 57),)
_WORD: Final = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Final = ((9, 10), (12, 13), (32, 32))
_CLASSES: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_POSIX: Final[dict[str, Ranges]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGITS,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_COUNTS: Final = re.compile("[0-9]+(,[0-9]*)?")
_ASSERTS: Final = {"A": BEGIN, "z": END, "b": WORD_BOUNDARY, "B": NO_WORD_BOUNDARY}


def compile_pattern(pattern: str) -> list[int]:
    """Returns the words of the program that matches *pattern* against a whole string.

    Raises `ModelError` for one that is no regular expression, or is not supported, naming the part and its place.
    """
    parser = _Parser(pattern)
    code = [*parser.whole(), (MATCH, 0, 0)]
    begins, ranges = [], list[tuple[int, int]]()
    for made in parser.sets:
        begins.append((len(ranges), len(made)))
        ranges += made
    words = [len(code), len(ranges)]
    for at, (operation, a, b) in enumerate(code):
        if operation == SET:
            a, b = begins[a]
        elif operation in (JUMP, SPLIT):
            a, b = at + a, at + b
        words += [operation, a, b]
    return words + [end for r in ranges for end in r]


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.flags = frozenset[str]()
        self.sets: list[Ranges] = []
        self.numbers: dict[Ranges, int] = {}
        self.depth = 0

    def whole(self) -> Code:
        """Returns the code of the whole pattern."""
        made = self.choice()
        if self.at < len(self.pattern):
            raise self.error("a ')' without a '('")
        return made

    def error(self, what: str) -> ModelError:
        """Describes a fault at the parser's place."""
        return ModelError(
            f"its pattern {self.pattern!r} has {what} at character {self.at + 1}",
            hint="use RE2's syntax, without scripts such as \\p{Greek}",
        )

    def next(self, text: str) -> bool:
        """Takes *text* if it comes next."""
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def take(self) -> str:
        """Takes a character."""
        if self.at == len(self.pattern):
            raise self.error("an end too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def choice(self) -> Code:
        """Takes alternatives; flags that are set in a group end with it."""
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise self.error(f"more than {MOST_NESTED} groups one inside the other")
        flags, made = self.flags, self.sequence()
        while self.next("|"):
            made = _either(made, self.sequence())
        self.flags, self.depth = flags, self.depth - 1
        return made

    def sequence(self) -> Code:
        """Takes one thing after another."""
        made: Code = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            begin = self.at
            made += self.repeated(self.atom(), begin)
            if len(made) > MOST_INSTRUCTIONS:
                raise self.error(f"more than {MOST_INSTRUCTIONS:,} instructions")
        return made

    def repeated(self, code: Code, begin: int) -> Code:
        """Takes the repetitions behind the text from *begin* on."""
        while (count := self.repetition()) is not None:
            least, most = count
            self.next("?")  # the whole match does not depend on greediness
            if len(code) * max(least, most or 0) > MOST_INSTRUCTIONS:
                raise self.error(f"a repetition of more than {MOST_INSTRUCTIONS:,} instructions (from {begin + 1} on)")
            made = code * least
            if most is None:
                code = made + _star(code)
                continue
            for _ in range(most - least):
                made = [*made, (SPLIT, 1, len(code) + 1), *code]
            code = made
        return code

    def repetition(self) -> tuple[int, int | None] | None:
        """Takes a repetition: how often at least and at most; None where there is none."""
        for text, found in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.next(text):
                return found
        end = self.pattern.find("}", self.at)
        inside = self.pattern[self.at + 1 : end] if self.pattern.startswith("{", self.at) and end > 0 else ""
        if not _COUNTS.fullmatch(inside):
            return None
        least, comma, most = inside.partition(",")
        counts = int(least), (int(most) if most else None) if comma else int(least)
        greatest = counts[0] if counts[1] is None else counts[1]
        if not counts[0] <= greatest <= MOST_REPEATS:
            raise self.error(f"a repetition {{{inside}}} of other than up to {MOST_REPEATS}")
        self.at = end + 1
        return counts

    def atom(self) -> Code:
        """Takes a character, a class, a place or a group."""
        if self.next("("):
            return self.group()
        if self.next("["):
            return self.one_of(self.bracket())
        c = self.take()
        if c in "*+?":
            self.at -= 1
            raise self.error(f"nothing that {c!r} repeats")
        if c == ".":
            return self.one_of(((0, _LAST),) if "s" in self.flags else ((0, 9), (11, _LAST)))
        if c == "^":
            return [(ASSERT, LINE_BEGIN if "m" in self.flags else BEGIN, 0)]
        if c == "$":
            return [(ASSERT, LINE_END if "m" in self.flags else END, 0)]
        return self.escape() if c == "\\" else self.letter(ord(c))

    def escape(self) -> Code:
        """Takes the escape behind a backslash."""
        if self.next("Q"):
            end = self.pattern.find("\\E", self.at)
            quoted = self.pattern[self.at : end if end >= 0 else len(self.pattern)]
            self.at = end + 2 if end >= 0 else len(self.pattern)
            return [instruction for c in quoted for instruction in self.letter(ord(c))]
        c = self.pattern[self.at : self.at + 1]
        if c in _ASSERTS and c:
            self.at += 1
            return [(ASSERT, _ASSERTS[c], 0)]
        found = self.class_escape()
        return self.one_of(found) if found is not None else self.letter(self.character())

    def class_escape(self) -> Ranges | None:
        """Takes a class behind a backslash, such as `\\d` or `\\p{Lu}`; None where there is none."""
        c = self.pattern[self.at : self.at + 1]
        if c and c.lower() in _CLASSES:
            self.at += 1
            found = _CLASSES[c.lower()]
            return found if c.islower() else _outside(found)
        if c not in ("p", "P") or not c:
            return None
        self.at += 1
        name = self.take()
        if name == "{":
            end = self.pattern.find("}", self.at)
            name, self.at = self.pattern[self.at : end], end + 1 if end >= 0 else self.at
        is_negated = (c == "P") != name.startswith("^")
        found = _category(name.removeprefix("^"))
        if not found:
            raise self.error(f"a class \\{c}{{{name}}}, which is no general category of Unicode's")
        return _outside(found) if is_negated else found

    def character(self) -> int:
        """Takes the character that an escape stands for."""
        c = self.take()
        if c in _ESCAPES:
            return _ESCAPES[c]
        if c == "x":
            return self.hexadecimal()
        if c in "01234567" and c.isascii():
            digits = c
            while len(digits) < 3 and self.pattern[self.at : self.at + 1] in tuple("01234567"):
                digits += self.take()
            if c != "0" and len(digits) < 2:
                raise self.error(f"a backreference \\{c}, which no automaton can match,")
            return int(digits, 8)
        if c.isascii() and c.isalnum():
            raise self.error(f"an unknown escape \\{c}")
        return ord(c)

    def hexadecimal(self) -> int:
        """Takes the digits behind `\\x`: two, or any number in braces."""
        begin, end = self.at, self.at + 2
        if self.next("{"):
            begin, end = self.at, self.pattern.find("}", self.at)
            self.at = end + 1 if end >= 0 else self.at
        else:
            self.at = end
        try:
            found = int(self.pattern[begin:end], 16)
        except ValueError:
            found = _LAST + 1
        if not 0 <= found <= _LAST:
            raise self.error("an escape \\x of no character")
        return found

    def group(self) -> Code:
        """Takes the text behind an opening parenthesis: a group, or flags."""
        outer = self.flags
        if self.next("?"):
            if self.next("P<") or self.next("<"):
                end = self.pattern.find(">", self.at)
                name = self.pattern[self.at : end] if end >= 0 else ""
                if not name.isidentifier():
                    raise self.error(
                        "a group (?P<...) or (?<...) that is not one with a name: there is no looking around,"
                    )
                self.at = end + 1
            elif self.set_flags():
                return []
        made = self.choice()
        self.flags = outer
        if not self.next(")"):
            raise self.error("an end without a ')'")
        return made

    def set_flags(self) -> bool:
        """Takes flags `i-s:` of a group; tells whether they are for the rest, without a group: `i-s)`."""
        to_set, flags = True, set(self.flags)
        while True:
            c = self.take()
            if c == "-":
                to_set = False
            elif c in "imsU" and c.isascii():
                (flags.add if to_set else flags.discard)(c)
            elif c in ":)":
                self.flags = frozenset(flags)
                return c == ")"
            else:
                raise self.error(f"a group (?{c}...), which RE2 has not: there are flags i, m, s, U and names,")

    def bracket(self) -> Ranges:
        """Takes a class behind `[`."""
        is_negated, found, first = self.next("^"), list[tuple[int, int]](), True
        while first or not self.next("]"):
            first = False
            if self.next("[:"):
                found += self.posix()
                continue
            c = self.take()
            known = self.class_escape() if c == "\\" else None
            if known is not None:
                found += known
                continue
            low = self.character() if c == "\\" else ord(c)
            high = low
            if self.pattern[self.at : self.at + 1] == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                c = self.take()
                high = self.character() if c == "\\" else ord(c)
            if high < low:
                raise self.error(f"a range {chr(low)}-{chr(high)} that is none")
            found.append((low, high))
        if "i" in self.flags:
            found = list(_folded(found))
        return _outside(found) if is_negated else _merged(found)

    def posix(self) -> Ranges:
        """Takes the name of a class behind `[:`."""
        is_negated, end = self.next("^"), self.pattern.find(":]", self.at)
        name = self.pattern[self.at : end] if end >= 0 else ""
        if name not in _POSIX:
            raise self.error(f"an unknown class [:{name}:]")
        self.at = end + 2
        return _outside(_POSIX[name]) if is_negated else _POSIX[name]

    def letter(self, point: int) -> Code:
        """Returns the code of one character."""
        return self.one_of(_folded([(point, point)]) if "i" in self.flags else ((point, point),))

    def one_of(self, ranges: Ranges) -> Code:
        """Returns the code of one character of a set."""
        number = self.numbers.setdefault(ranges, len(self.sets))
        if number == len(self.sets):
            self.sets.append(ranges)
        return [(SET, number, 0)]


def _either(a: Code, b: Code) -> Code:
    return [(SPLIT, 1, len(a) + 2), *a, (JUMP, len(b) + 1, 0), *b]


def _star(code: Code) -> Code:
    return [(SPLIT, 1, len(code) + 2), *code, (JUMP, -len(code) - 1, 0)]


def _merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the ranges in order, those that touch as one."""
    made: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if made and low <= made[-1][1] + 1:
            made[-1] = made[-1][0], max(made[-1][1], high)
        else:
            made.append((low, high))
    return tuple(made)


def _outside(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the complement of the ranges."""
    made, begin = list[tuple[int, int]](), 0
    for low, high in _merged(ranges):
        if low > begin:
            made.append((begin, low - 1))
        begin = high + 1
    return (*made, (begin, _LAST)) if begin <= _LAST else tuple(made)


@lru_cache(maxsize=64)
def _category(name: str) -> Ranges:
    """Returns the characters of a general category such as L or Lu; none for an unknown one."""
    if not name or len(name) > 2 or not name.isalpha():
        return ()
    return _points(lambda c: unicodedata.category(c).startswith(name))


def _points(holds: Callable[[str], bool]) -> Ranges:
    return _merged([(p, p) for p in range(_LAST + 1) if holds(chr(p))])


@lru_cache(maxsize=1)
def _cases() -> dict[int, tuple[int, ...]]:
    """Returns the other cases of each letter that has some."""
    groups: dict[str, list[int]] = {}
    for p in range(_LAST + 1):
        c = chr(p)
        if c.lower() != c or c.upper() != c:
            key = c.upper().lower() if len(c.upper()) == 1 else c.lower()
            groups.setdefault(key, []).append(p)
    return {p: tuple(g) for g in groups.values() for p in g if len(g) > 1}


def _folded(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the ranges with the other cases of the letters in them."""
    given, cases = list(ranges), _cases()
    more = [(q, q) for p, others in cases.items() if any(low <= p <= high for low, high in given) for q in others]
    return _merged([*given, *more])
