#!/bin/sh
# Measures Weft beside its peers on the eight networks, with 1 and 2 threads, and prints the tables. Makes what is
# missing first: the peers' environments and the ONNX files. Arguments go to bench.py, after the defaults:
#   ./run.sh                                   everything
#   ./run.sh --models ops --threads 1          the single operators
set -eu
cd "$(dirname "$0")"
./setup.sh
[ -e onnx/manifest.json ] || venv-torch/bin/python models.py onnx
exec venv-ort/bin/python bench.py --models nets --engines weft,onnxruntime,openvino --threads 1,2 "$@"
