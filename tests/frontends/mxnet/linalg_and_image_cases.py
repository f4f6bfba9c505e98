"""Cases for `make_cases` of matrices (`linalg`), images before a network, windows as columns, and lengths of sequences."""

from __future__ import annotations

import numpy as np
from tests.frontends.mxnet.named_cases import f, n, named, u

SQUARE = f(2, 4, 4)
DEFINITE = SQUARE @ SQUARE.transpose(0, 2, 1) + 3 * np.eye(4)
LOWER = np.linalg.cholesky(DEFINITE)

for _prefix in ("_linalg_", "linalg_"):
    named(f"{_prefix}gemm", f(2, 3, 4), f(2, 3, 5), f(2, 4, 5), transpose_a=True, alpha=0.5, beta=2.0)
    named(f"{_prefix}potrf", DEFINITE)
    named(f"{_prefix}potri", LOWER)
    named(f"{_prefix}trmm", LOWER, f(2, 4, 3), alpha=2.0)
    named(f"{_prefix}trsm", LOWER, f(2, 4, 3), alpha=0.5)
    named(f"{_prefix}syrk", f(2, 3, 4), alpha=0.3)
    named(f"{_prefix}sumlogdiag", DEFINITE)
    named(f"{_prefix}gelqf", f(2, 3, 4), outputs=2)
    named(f"{_prefix}inverse", DEFINITE)
    named(f"{_prefix}det", f(2, 4, 4))
    named(f"{_prefix}slogdet", f(2, 4, 4), outputs=2)
    named(f"{_prefix}extractdiag", f(2, 4, 4), offset=1)
    named(f"{_prefix}makediag", f(2, 3), offset=-1)
    named(f"{_prefix}extracttrian", f(2, 4, 4))
    named(f"{_prefix}maketrian", f(2, 6))

named("_linalg_syevd", DEFINITE, outputs=2)
named("_linalg_trmm.right", LOWER, f(2, 3, 4), transpose=True, rightside=True)
named("_linalg_trsm.right", LOWER, f(2, 3, 4), transpose=True, rightside=True)
named("_linalg_trsm.upper", LOWER.transpose(0, 2, 1), f(2, 4, 3), lower=False)
named("_linalg_syrk.turned", f(2, 3, 4), transpose=True)
named("_linalg_sumlogdiag.one", DEFINITE[0])
named("_linalg_extractdiag.below", f(2, 4, 4), offset=-2)
named("_linalg_makediag.above", f(2, 3), offset=2)
named("_linalg_extracttrian.upper", f(2, 4, 4), lower=False)
named("_linalg_extracttrian.above", f(2, 4, 4), offset=1)
named("_linalg_extracttrian.below", f(2, 4, 4), offset=-1, lower=False)
named("_linalg_maketrian.upper", f(2, 6), lower=False)
named("_linalg_maketrian.above", f(2, 6), offset=1)
named("_npi_cholesky", DEFINITE)
named("_npi_solve", DEFINITE, f(2, 4, 3))

named("_image_to_tensor", n(5, 6, 3, most=255))
named("_image_to_tensor.several", n(2, 5, 6, 3, most=255))
named("_image_normalize", f(3, 5, 6), mean="(0.5, 0.4, 0.3)", std="(0.2, 0.3, 0.4)")
named("_image_normalize.one", f(2, 3, 5, 6), mean="(0.5,)", std="(0.2,)")
named("_image_crop", f(7, 8, 3), x=1, y=2, width=4, height=5)
named("_image_flip_left_right", f(6, 6, 3))
named("_image_flip_top_bottom", f(6, 6, 3))
named("_image_resize", f(9, 7, 3), size="(5, 6)")
named("_image_resize.nearest", f(2, 9, 7, 3), size="(5, 6)", interp=0)
named("_image_resize.larger", f(4, 5, 3), size="(9,)")
named("_image_resize.ratio", f(6, 9, 3), size="(4,)", keep_ratio=True)

named("im2col", f(1, 3, 4, 5), kernel="(2, 3)", stride="(1, 2)", pad="(1, 0)")
named("im2col.dilated", f(2, 3, 8, 7), kernel="(3, 2)", dilate="(2, 1)")
named("col2im", f(1, 18, 15), output_size="(4, 5)", kernel="(2, 3)", stride="(1, 2)", pad="(1, 1)")
named("_contrib_index_array", f(3, 4, 2))
named("_contrib_index_array.axes", f(3, 4, 2), axes="(2, 0)")
named("_contrib_boolean_mask", f(5, 3), [0, 1, 1, 0, 1])
named("_npi_boolean_mask", f(5, 3), [1, 0, 1, 0, 1])
named("cast_storage", f(3, 4), stype="default")
named("SVMOutput", f(3, 4), n(3, most=4))
named("topk.mask", f(3, 6), k=2, ret_typ="mask")
named("SequenceLast.axis", f(2, 5, 3), [2, 4], axis=1, use_sequence_length=True)
named(
    "RNN.projected",
    f(3, 2, 4),
    u(2 * (20 * (4 + 3) + 15) + 80),
    f(2, 2, 3),
    f(2, 2, 5),
    state_size=5,
    num_layers=1,
    mode="lstm",
    bidirectional=True,
    projection_size=3,
    state_outputs=True,
    outputs=3,
)
