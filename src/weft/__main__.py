"""`python -m weft`: the command `weft`, in the Python that this is run by."""

from __future__ import annotations

from weft.cli.main import main

if __name__ == "__main__":
    main()
