"""`python -m weft.native`: options that let a C or C++ compiler find the runtime.

cc -std=c99 -O2 -pthread $(python -m weft.native --includes --sources) main.c -o main
"""

from __future__ import annotations

import argparse

from weft.native import include_folders, source_files


def main() -> None:
    """Prints the requested compiler options on one line."""
    parser = argparse.ArgumentParser(
        prog="python -m weft.native",
        description="Print options that let a C or C++ compiler find Weft's runtime.",
        epilog="example: cc -std=c99 -O2 -pthread $(python -m weft.native --includes --sources) main.c -o main",
    )
    parser.add_argument("--includes", action="store_true", help="-I and the folders of weft.h and weft.hpp")
    parser.add_argument("--sources", action="store_true", help="the C files to be compiled and linked with a program")
    asked = parser.parse_args()
    if not asked.includes and not asked.sources:
        parser.error("ask for --includes, --sources, or both")
    words = [f"-I{folder}" for folder in include_folders()] if asked.includes else []
    print(*words, *(source_files() if asked.sources else []))


if __name__ == "__main__":
    main()
