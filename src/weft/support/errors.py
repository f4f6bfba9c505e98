"""The errors a user can meet.

    WeftError                       everything Weft raises on purpose
    ├── ModelError                  the model file or graph is wrong
    │   ├── UnsupportedOperators    the model needs operators Weft lacks; lists all of them
    │   └── UnknownValues           what the model computes with decides what is to be compiled
    ├── InputError                  a call's inputs do not fit the model
    ├── TypeMismatch                an expression mixes data types, or a shape rule is broken
    ├── GradientError               a formula has no derivative
    ├── ScheduleError               a schedule step would change the program's meaning
    ├── VerifyError                 a program breaks an invariant of its representation
    ├── ParseError                  text is not a program
    ├── LoweringError               a pass cannot lower the program
    ├── ToolchainError              LLVM or another tool failed
    ├── ArtifactError               a saved model is damaged or made for something else
    ├── CacheError                  the cache cannot be used
    ├── DeviceError                 the machine or device refused
    └── RuntimeFailure              a compiled model stopped while it ran

Each says what was wrong, where in the model, and what to do about it.
"""

from __future__ import annotations


class WeftError(Exception):
    """Base of all of Weft's errors: a message, where it happened, and what to do next."""

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{where}{self.message}{hint}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(cls: type[WeftError], args: tuple[object, ...], state: dict[str, object]) -> WeftError:
    """Unpickles an error of any subclass, whatever its constructor takes."""
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class ModelError(WeftError):
    """The model file or the graph in it is wrong."""


class UnsupportedOperators(ModelError):
    """The model uses operators that Weft does not have; all of them are listed at once."""


class UnknownValues(ModelError):
    """Values that are not known before the model runs decide shapes, or which nodes run: it can't be compiled without them."""


class InputError(WeftError):
    """A call's inputs do not fit the model's signature."""


class TypeMismatch(WeftError):
    """An expression mixes data types, or operands whose shapes do not fit."""


class GradientError(WeftError):
    """A gradient was asked for of what has none, or of what it cannot be worked out for."""


class ScheduleError(WeftError):
    """A schedule step was refused, because it would (or might) change what the program computes."""


class VerifyError(WeftError):
    """A program breaks an invariant of its representation; a bug in whatever built it."""


class ParseError(WeftError):
    """A text is not a well-formed program."""


class LoweringError(WeftError):
    """A lowering pass met a program that it cannot lower."""


class ToolchainError(WeftError):
    """LLVM, a compiler or a linker failed."""


class ArtifactError(WeftError):
    """A saved model is damaged, truncated, or made for another machine."""


class CacheError(WeftError):
    """The on-disk cache cannot be read or written."""


class DeviceError(WeftError):
    """The machine or the device refused: no memory, no threads, no such device."""


class RuntimeFailure(WeftError):
    """A compiled model stopped while it ran: the values it met break what the model assumes."""
