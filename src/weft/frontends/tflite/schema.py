"""TensorFlow Lite's schema, version 3, as far as Weft reads it: element types, operators by number, and their options.

Options are rows of `name kind` in the order of the table's fields, with a default behind `=` where it is not 0; `-` stands for a
field that is not read. Names are those that TensorFlow has for the attribute, where it has one; the kind `type` is an element
type, `padding` one of SAME and VALID, and `list` a vector of integers,
`text` a text, `floats` a vector of floats.
"""

from __future__ import annotations

from typing import Final

from weft.support.dtypes import SCALARS, DType

TYPES: Final[dict[int, DType]] = {
    0: SCALARS["f32"],
    1: SCALARS["f16"],
    2: SCALARS["i32"],
    3: SCALARS["u8"],
    4: SCALARS["i64"],
    6: SCALARS["bool"],
    7: SCALARS["i16"],
    9: SCALARS["i8"],
    10: SCALARS["f64"],
    12: SCALARS["u64"],
    15: SCALARS["u32"],
    16: SCALARS["u16"],
    18: SCALARS["bf16"],
}
INT4: Final = 17
"""Integers of 4 bits, two in a byte, the first in its low half; weights alone are of this type."""

TYPE_NAMES: Final = {5: "string", 8: "complex64", 11: "complex128", 13: "resource", 14: "variant", 17: "int4"}

_NAMES: Final = (
    "ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR "
    "FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION "
    "LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH "
    "CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER "
    "BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE "
    "BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM "
    "ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE "
    "TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK "
    "LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL "
    "FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL "
    "REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND "
    "HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM "
    "BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS "
    "HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE "
    "ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU "
    "DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 "
    "UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT"
)
BUILTINS: Final = tuple(_NAMES.split())
"""The operators by number; those after them are StableHLO's."""

CUSTOM: Final = {
    "CUSTOM TFLite_Detection_PostProcess": "",
    "CUSTOM Convolution2DTransposeBias": "padding padding, stride_w i32, stride_h i32",
}
"""The custom operators that are read, with the numbers that their settings are; the settings of others are a FlexBuffer."""

PLACEHOLDER: Final = 127
"""The number that the field of one byte has for operators of greater numbers."""

PADDINGS: Final = ("SAME", "VALID")
MIRRORS: Final = ("REFLECT", "SYMMETRIC")

OPTIONS: Final = {
    "ADD": "fused u8",
    "ARG_MAX": "output_type type",
    "ARG_MIN": "output_type type",
    "AVERAGE_POOL_2D": "padding padding, stride_w i32, stride_h i32, filter_w i32, filter_h i32, fused u8",
    "BATCH_MATMUL": "adj_x bool, adj_y bool",
    "BUCKETIZE": "boundaries floats",
    "CALL_ONCE": "init i32",
    "CONCATENATION": "axis i32, fused u8",
    "CONV_2D": "padding padding, stride_w i32, stride_h i32, fused u8, dilation_w i32=1, dilation_h i32=1",
    "CONV_3D": (
        "padding padding, stride_d i32, stride_w i32, stride_h i32, fused u8, dilation_d i32=1, dilation_w i32=1, "
        "dilation_h i32=1"
    ),
    "CONV_3D_TRANSPOSE": (
        "padding padding, stride_d i32, stride_w i32, stride_h i32, fused u8, dilation_d i32=1, dilation_w i32=1, "
        "dilation_h i32=1"
    ),
    "CUMSUM": "exclusive bool, reverse bool",
    "DEPTHWISE_CONV_2D": "padding padding, stride_w i32, stride_h i32, -, fused u8, dilation_w i32=1, dilation_h i32=1",
    "DEPTH_TO_SPACE": "block_size i32",
    "DIV": "fused u8",
    "EMBEDDING_LOOKUP_SPARSE": "combiner u8",
    "FAKE_QUANT": "min f32, max f32, num_bits i32, narrow_range bool",
    "FULLY_CONNECTED": "fused u8, weights_format u8, keep_num_dims bool",
    "GATHER": "axis i32, batch_dims i32",
    "GELU": "approximate bool",
    "IF": "then i32, else i32",
    "L2_NORMALIZATION": "fused u8",
    "L2_POOL_2D": "padding padding, stride_w i32, stride_h i32, filter_w i32, filter_h i32, fused u8",
    "LEAKY_RELU": "alpha f32",
    "LOCAL_RESPONSE_NORMALIZATION": "depth_radius i32, bias f32, alpha f32, beta f32",
    "MAX_POOL_2D": "padding padding, stride_w i32, stride_h i32, filter_w i32, filter_h i32, fused u8",
    "MEAN": "keep_dims bool",
    "MIRROR_PAD": "mode mirror",
    "MUL": "fused u8",
    "ONE_HOT": "axis i32",
    "PACK": "-, axis i32",
    "REDUCE_ALL": "keep_dims bool",
    "REDUCE_ANY": "keep_dims bool",
    "REDUCE_MAX": "keep_dims bool",
    "REDUCE_MIN": "keep_dims bool",
    "REDUCE_PROD": "keep_dims bool",
    "RESHAPE": "new_shape list",
    "RESIZE_BILINEAR": "-, -, align_corners bool, half_pixel_centers bool",
    "RESIZE_NEAREST_NEIGHBOR": "align_corners bool, half_pixel_centers bool",
    "REVERSE_SEQUENCE": "seq_dim i32, batch_dim i32",
    "RNN": "function u8",
    "SHAPE": "out_type type",
    "SOFTMAX": "beta f32",
    "SPACE_TO_DEPTH": "block_size i32",
    "SPLIT": "num_split i32",
    "SQUEEZE": "squeeze_dims list",
    "STRIDED_SLICE": (
        "begin_mask i32, end_mask i32, ellipsis_mask i32, new_axis_mask i32, shrink_axis_mask i32, offset bool"
    ),
    "SUB": "fused u8",
    "SUM": "keep_dims bool",
    "SVDF": "rank i32, fused u8",
    "TRANSPOSE_CONV": "padding padding, stride_w i32, stride_h i32, fused u8",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "function u8, cell_clip f32, proj_clip f32, time_major bool",
    "BIDIRECTIONAL_SEQUENCE_LSTM": "function u8, cell_clip f32, proj_clip f32, merge_outputs bool, time_major bool=1",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "time_major bool, function u8",
    "BIDIRECTIONAL_SEQUENCE_RNN": "time_major bool, function u8, merge_outputs bool",
    "UNIQUE": "out_idx type=2",
    "UNPACK": "num i32, axis i32",
    "VAR_HANDLE": "container text, shared_name text",
    "WHILE": "cond i32, body i32",
}
