"""The file names of saved models: none that says it is another kind of file."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Final

from weft.support.errors import ArtifactError

ENDING: Final = ".weft"
"""The ending of the names of saved models, if they have one."""

_LIBRARY: Final = "`weft compile MODEL -o {name}` makes one; or end the name in .weft"
_LINKED: Final = "`weft compile MODEL -o FOLDER/` writes model.o and model.h, to link with a program"
_SOURCE: Final = "`weft compile MODEL -o NAME.c --target c` writes one; or end the name in .weft"
_NAMED: Final = "end the name in .weft"

OTHER_KINDS: Final[dict[str, tuple[str, str]]] = {
    ".so": ("a shared library", _LIBRARY),
    **dict.fromkeys((".o", ".obj"), ("an object file", _LINKED)),
    **dict.fromkeys((".a", ".lib"), ("a static library", _LINKED)),
    **dict.fromkeys((".h", ".hpp", ".c", ".cc", ".cpp"), ("a C source", _SOURCE)),
    **dict.fromkeys((".exe", ".dll", ".dylib", ".wasm"), ("a program or library of another system", _LINKED)),
    **dict.fromkeys((".onnx", ".ort"), ("an ONNX model", _NAMED)),
    **dict.fromkeys(
        (".pt", ".pth", ".pb", ".tflite", ".h5", ".keras", ".safetensors"), ("a framework's model", _NAMED)
    ),
    **dict.fromkeys((".npy", ".npz", ".json", ".html", ".py", ".txt", ".md", ".csv", ".zip"), ("such a file", _NAMED)),
}
"""Endings of other files: the kind of file that they announce, and the command for that."""


def check_saved_name(path: str | os.PathLike[str]) -> None:
    """Raises `ArtifactError` if a file of that name would be taken for something else than a saved model."""
    name = PurePath(path)
    if name.suffix.lower() in OTHER_KINDS:
        kind, hint = OTHER_KINDS[name.suffix.lower()]
        raise ArtifactError(f"{name} can't be written: a saved model is not {kind}", hint=hint.format(name=name))
