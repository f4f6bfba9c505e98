"""What `weft.compile` says that it reads."""

from typing import Final

READS: Final = (
    "give a .tflite file of TensorFlow Lite; or the folder of a saved model of TensorFlow, or a frozen graph (.pb); "
    "or a Core ML .mlpackage or .mlmodel; or an MXNet symbol.json with its .params beside it, or the pair of paths; "
    "or an ONNX file or an onnx.ModelProto; or a .keras or .h5 file of Keras; "
    "or a .pt2 file, a torch.export.ExportedProgram, or a torch.nn.Module with example_inputs; "
    "or StableHLO's text or bytecode, what JAX lowers or exports, or a jax.jit function with example_inputs; "
    "or a Darknet .cfg with its .weights beside it, or the pair of paths; "
    "or a Caffe .prototxt with its .caffemodel beside it, or the pair of paths"
)
