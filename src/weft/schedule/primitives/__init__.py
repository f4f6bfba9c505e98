"""The primitives, one a file; importing this package registers them all."""

from weft.support.lazy_import import import_all

import_all(__path__, __name__)
