"""The native runtime: `rt/` is freestanding C99, `cpp/` its wrapper for C++17, `py/` its Python binding.

Programs in C and C++ find it with `python -m weft.native --includes --sources`, as options for a compiler.
"""

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def include_folders() -> list[Path]:
    """Returns the folders of `weft.h` and of `weft.hpp`."""
    return [_HERE / "rt", _HERE / "cpp"]


def header_files() -> list[Path]:
    """Returns the headers, of which `weft.h`, `weft_abi.h` and `weft.hpp` are a program's to include."""
    return [*sorted((_HERE / "rt").glob("*.h")), *sorted((_HERE / "cpp").glob("*.hpp"))]


def source_files() -> list[Path]:
    """Returns the C99 files of the runtime, which are compiled as they are, and linked with a program."""
    return sorted((_HERE / "rt").glob("*.c"))
