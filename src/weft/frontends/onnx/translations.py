"""Imports every family of translations, so that the table of operators is complete."""

from weft.frontends.onnx import ops
from weft.frontends.onnx.registry import STRING_TABLE, TABLE
from weft.support.lazy_import import import_all

import_all(ops.__path__, ops.__name__)
TABLE.seal()
STRING_TABLE.seal()
