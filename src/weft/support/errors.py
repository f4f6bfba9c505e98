"""The errors a user can meet.

    WeftError                       everything Weft raises on purpose
    ├── ModelError                  the model file or graph is wrong
    │   ├── MissingFile             there is no such file (a FileNotFoundError too)
    │   ├── UnsupportedOperators    the model needs operators Weft lacks; lists all of them
    │   └── UnknownValues           what the model computes with decides what is to be compiled
    ├── InputError                  a call's inputs, or its options, are not what they can be (a ValueError too)
    ├── TypeMismatch                an expression mixes data types, or a shape rule is broken
    ├── GradientError               a formula has no derivative
    ├── ScheduleError               a schedule step would change the program's meaning
    │   └── Illegal                 the same, before the schedule has added the step and the program
    ├── VerifyError                 a program breaks an invariant of its representation
    ├── ParseError                  text is not a program
    │   └── TextError               the same, at a place of the text
    ├── LoweringError               a pass cannot lower the program
    ├── ToolchainError              LLVM or another tool failed
    ├── ArtifactError               a saved model is damaged or made for something else; a file can't be written
    ├── CacheError                  the cache cannot be used
    ├── RecordsError                tuning records can't be read or written
    ├── DeviceError                 the machine or device refused
    ├── ExecutionError              an interpreted program performed an illegal operation
    │   ├── RaceError               two of its threads touch the same element at once
    │   └── DivergenceError         some of its threads come by a barrier, and others do not
    └── RuntimeFailure              a compiled model stopped while it ran

Each says what was wrong, where in the model, and what to do about it, in printable characters whatever names a model has.
docs/errors.md shows the messages.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.support.text import printable, printable_line


class WeftError(Exception):
    """Base of all of Weft's errors: a message, where it happened, and what to do next.

    A message that is costly to write is given as a function, called when somebody reads it first.
    """

    def __init__(self, message: str | Callable[[], str], *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(*([message] if isinstance(message, str) else []))
        self._message = message
        self.where = where
        self.hint = hint

    @property
    def message(self) -> str:
        """The message, without place and hint."""
        if not isinstance(self._message, str):
            self._message = self._message()
        return self._message

    def __str__(self) -> str:
        where = f"{printable_line(self.where)}: " if self.where else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return printable(f"{where}{self.message}{hint}")

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, {**self.__dict__, "_message": self.message})


def _rebuild(cls: type[WeftError], args: tuple[object, ...], state: dict[str, object]) -> WeftError:
    """Unpickles an error of any subclass, whatever its constructor takes."""
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class ModelError(WeftError):
    """The model file or the graph in it is wrong.

    What to do: export or download the model again, or change what the message names; the place is given as the model's own
    tools show it, `OPERATOR NAME-OF-THE-NODE`.
    """


class MissingFile(ModelError, FileNotFoundError):
    """There is no file where the model should be; a script that catches Python's own error for this catches it too.

    What to do: give the path of the model's file.
    """


class UnsupportedOperators(ModelError):
    """The model uses operators that Weft does not have; all of them are listed at once.

    What to do: export the model with others, or as functions of ONNX's standard operators.
    """


class UnknownValues(ModelError):
    """Shapes, or the choice of nodes that run, depend on values that are unknown until the model runs: it can't be compiled.

    What to do: export the model with these values as constants, or fix the sizes that they depend on.
    """


class InputError(WeftError, ValueError):
    """A call's inputs do not fit the model's signature, or an option has an invalid value.

    What to do: pass values as the message describes them; nothing is converted implicitly.
    """


class TypeMismatch(WeftError, TypeError):
    """An expression mixes data types, has operands of incompatible shapes, or is of the wrong type; a `TypeError` too.

    What to do: convert with `cast`, or reshape; in a model, the message is part of a `ModelError` that names the node.
    """


class GradientError(WeftError):
    """A gradient was requested of an expression that has none, or whose gradient can't be derived.

    What to do: exclude it from differentiation, or write it as a tensor expression with a derivative.
    """


class ScheduleError(WeftError):
    """A schedule step was refused, because it would (or might) change what the program computes.

    What to do: look at the marked statement in the message, and apply another step first, or instead.
    """


class VerifyError(WeftError):
    """A program breaks an invariant of its representation; a bug in whatever built it.

    What to do: mend what built the program; if that was Weft, report it.
    """


class ParseError(WeftError):
    """The text is not a well-formed program.

    What to do: correct the text at the marked place.
    """


class LoweringError(WeftError):
    """A lowering pass met a program that it cannot lower.

    What to do: for a model it is a bug in Weft, and a lower `opt_level` may get around it; report it. For a program of your own,
    schedule it otherwise.
    """


class ToolchainError(WeftError):
    """LLVM, a compiler or a linker failed, or a package that it needs is not installed.

    What to do: install the missing package (`weft doctor` names it); if LLVM rejects code that Weft generated, report it.
    """


class ArtifactError(WeftError):
    """A saved model is damaged, truncated, or made for another machine; or a file can't be written.

    What to do: copy the file again, or compile the model for this machine; choose another place to write to.
    """


class CacheError(WeftError):
    """The on-disk cache cannot be read or written. Compiling warns of it and goes on without; `weft cache` fails.

    What to do: set `WEFT_CACHE_DIR` to a folder of your own, in which the cache's folder is made.
    """


class RecordsError(WeftError):
    """A database of tuning records is missing, damaged, of another kind, or can't be written.

    What to do: `weft records salvage` copies what can still be read of a damaged one to a new file; compiling without `records`
    needs none.
    """


class DeviceError(WeftError):
    """The machine or the device refused: no memory, no threads, no such device.

    What to do: use less at a time (a smaller batch), or stop other processes.
    """


class RuntimeFailure(WeftError):
    """A compiled model stopped while it ran: its values violate an assumption of the model.

    What to do: check the values of the inputs. The message for an index out of range names the node that uses it.
    """
