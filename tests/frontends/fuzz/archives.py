"""Archives and files of HDF5 with damaged members."""

from __future__ import annotations

import io
import random
import zipfile

import h5py
from tests.frontends.fuzz.bytes_at_random import damaged_bytes, damaged_numbers
from tests.frontends.fuzz.files import Damage
from tests.frontends.fuzz.json_values import damaged_json


def damaged_archive(rng: random.Random, data: bytes) -> bytes:
    """Returns an archive of which a member is damaged: JSON in its values, others in their bytes; or the whole in its bytes."""
    if rng.random() < 0.1:
        return b"PK\x03\x04" + damaged_bytes(rng, data[4:])
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        chosen = rng.choice(
            [n for n in old.namelist() if n.endswith(".json")] if rng.random() < 0.8 else old.namelist()
        )
        with zipfile.ZipFile(made, "w") as new:
            for name in old.namelist():
                member = old.read(name)
                how: Damage = damaged_json if name.endswith(".json") else rng.choice((damaged_bytes, damaged_numbers))
                new.writestr(name, how(rng, member) if name == chosen else member)
    return made.getvalue()


def damaged_hdf5(rng: random.Random, data: bytes) -> bytes:
    """Returns a file of HDF5 whose attribute of a model's configuration is damaged, or of which some bytes are."""
    if rng.random() < 0.4:
        return data[:8] + rng.choice((damaged_bytes, damaged_numbers))(rng, data[8:])
    held = io.BytesIO(data)
    with h5py.File(held, "r+") as file:
        text = file.attrs["model_config"]
        file.attrs["model_config"] = damaged_json(rng, text.encode() if isinstance(text, str) else text).decode()
    return held.getvalue()
