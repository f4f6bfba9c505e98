"""ONNX models: `importer.from_onnx` imports one, `file.read.files_of` lists the files that it consists of."""
