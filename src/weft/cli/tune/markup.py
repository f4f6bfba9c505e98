"""Elements of a page as text, in which nothing that a model says can be markup."""

from __future__ import annotations

import html

from weft.support.text import printable


class Markup(str):
    """Text of a page in which all is escaped that has to be."""

    __slots__ = ()


def element(name: str, *content: str, **attributes: str | float | bool) -> Markup:
    """Returns an element; *content* and *attributes* are escaped, elements among the content aside.

    `class_` stands for the attribute class, `aria_label` for aria-label. An attribute that is True has no value, one that is
    False is left out.
    """
    written = [f" {_name(k)}" + _value(v) for k, v in attributes.items() if v is not False]
    return Markup(f"<{name}{''.join(written)}>{joined(*content)}</{name}>")


def joined(*content: str) -> Markup:
    """Returns texts and elements one after another; texts are escaped."""
    return Markup("".join([c if isinstance(c, Markup) else html.escape(printable(c)) for c in content]))


def _name(keyword: str) -> str:
    return keyword.rstrip("_").replace("_", "-")


def _value(value: str | float) -> str:
    if isinstance(value, bool):
        return ""
    return f'="{html.escape(printable(value) if isinstance(value, str) else f"{value:.6g}")}"'
