"""The native runtime in C99: `rt/` runs models, `state/` has what their calls leave for the next ones, `load/` reads artifacts,
`hostops/` has the operators that are no loop nests, `system/` has the services of an operating system.

`rt/`, `state/` and `load/` are freestanding; threads, and how many there are, are in `system/`; `hostops/` uses the C library.
`launch/`, freestanding too, replays host programs from bytes, `cuda/` launches their kernels on a GPU, `measure/` times kernels:
none of them is part of a program that runs saved models. `cpp/` is the wrapper for C++17, `py/` the Python binding.

Programs in C and C++ find it with `python -m weft.native --includes --sources`, as options for a compiler.
"""

from pathlib import Path
from typing import Final

_HERE = Path(__file__).resolve().parent
PARTS: Final = ("rt", "state", "load", "hostops", "system")
"""The folders of the runtime's C files, and of their headers: those that programs include are in the first."""


def include_folders() -> list[Path]:
    """Returns the folders of `weft.h` and of `weft.hpp`."""
    return [_HERE / "rt", _HERE / "cpp"]


def header_files() -> list[Path]:
    """Returns the headers, of which `weft.h`, `weft_abi.h` and `weft.hpp` are a program's to include."""
    of_parts = [path for part in PARTS for path in (_HERE / part).glob("*.h")]
    return [*sorted(of_parts), *sorted((_HERE / "cpp").glob("*.hpp"))]


def source_files() -> list[Path]:
    """Returns the C99 files of the runtime, which are compiled as they are, and linked with a program."""
    return sorted(path for part in PARTS for path in (_HERE / part).glob("*.c"))
