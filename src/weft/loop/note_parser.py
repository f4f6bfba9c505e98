"""The parser of notes: keyword arguments, whose values are the note's fields."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args, get_origin

from weft.loop.access_parser import AccessParser
from weft.loop.buffer import Buffer
from weft.loop.nodes import NOTHING, Alloc, Stmt, View
from weft.loop.notes import NOTES, Note, UserNote
from weft.loop.visit import statements


class NoteParser(AccessParser):
    """Reads notes by the fields of their classes; a keyword of no class is a note of the user's."""

    def notes(self, keywords: Sequence[ast.keyword], body: Stmt = NOTHING) -> tuple[Note, ...]:
        """Reads the notes of the statement that has this *body*; they may also name buffers declared in the body."""
        return tuple([n for k in keywords for n in self._notes(k, body)])

    def _notes(self, k: ast.keyword, body: Stmt) -> Iterator[Note]:
        kind = None if k.arg is None else NOTES.get(k.arg)
        if kind is None:
            given = self.constant(k.value)
            named = given if k.arg is None and isinstance(given, dict) else {k.arg: given}
            for name, value in named.items():
                if not isinstance(value, int | float | str) or not isinstance(name, str):
                    raise self.error(k.value, f"the value of a note is a number or a string, not `{value!r}`")
                yield UserNote(name, value)
            return
        several = kind.is_repeatable and isinstance(k.value, ast.List)
        for at in k.value.elts if several and isinstance(k.value, ast.List) else [k.value]:
            yield self._note(kind, at, body)

    def _note(self, kind: type[Note], at: ast.expr, body: Stmt) -> Note:
        """Reads the values of a note's fields: that of the only one, a tuple of several, 1 for none."""
        hints = [f.hint for f in kind.node_fields.values()]
        values = at.elts if len(hints) > 1 and isinstance(at, ast.Tuple) else [at]
        if not hints:
            if self.constant(at) != 1:
                raise self.error(at, f"the note {kind.key} has no value: write {kind.key}=1")
            values = []
        if len(values) != len(hints):
            raise self.error(at, f"the note {kind.key} has the fields ({', '.join(kind.node_fields)})")
        made: Callable[..., Note] = kind
        return made(*[self._field(v, hint, kind, body) for v, hint in zip(values, hints, strict=True)])

    def _field(self, at: ast.expr, hint: Any, kind: type[Note], body: Stmt) -> Any:
        if hint is Buffer:
            return self._buffer(at, body)
        if get_origin(hint) is tuple:
            if not isinstance(at, ast.Tuple):
                raise self.error(at, f"expected a tuple, not `{ast.unparse(at)}`")
            return tuple([self._field(x, get_args(hint)[0], kind, body) for x in at.elts])
        value = self.constant(at)
        if type(value) is not hint:
            raise self.error(at, f"a field of the note {kind.key} is of type {hint.__name__}, not `{ast.unparse(at)}`")
        return value

    def _buffer(self, at: ast.expr, body: Stmt) -> Buffer:
        """Returns the buffer of a name, in scope or declared in *body*."""
        inside = [s.buffer for s in statements(body) if isinstance(s, Alloc | View)]
        found = [b for b in inside if isinstance(at, ast.Name) and b.name == at.id]
        if not found:
            return self.buffer(at)
        if len(found) > 1 or self.scope.get(found[0].name) is not None:
            raise self.error(at, f"there are several buffers called {found[0].name}")
        return found[0]
