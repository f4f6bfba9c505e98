"""Knobs: the questions of a schedule as the coordinates of a space."""

from __future__ import annotations

from dataclasses import dataclass

from weft.cost import Address, Decision


@dataclass(frozen=True)
class Knob:
    """A question and its domain, the decisions that it may have; that number `default` is the one taken without a search."""

    address: Address
    domain: tuple[Decision, ...]
    default: int

    @property
    def name(self) -> str:
        """The subject and the kind."""
        subject, kind, number = self.address
        return f"{subject}: {kind}" + (f" {number + 1}" if number else "")
