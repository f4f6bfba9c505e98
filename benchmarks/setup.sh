#!/bin/sh
# Makes the peers' environments beside this file: venv-ort (ONNX Runtime, OpenVINO) and venv-torch, which models.py needs
# too; or those that are named:
#   ./setup.sh [ort] [torch] [tvm] [iree] [tiny] [jax] [tensorflow]
# PYTHON names the interpreter to make them with. What is there already is left alone.
set -eu
cd "$(dirname "$0")"

make_venv() {
  name=$1
  shift
  [ -e "venv-$name/.ready" ] || [ -L "venv-$name" ] && return
  "${PYTHON:-python3}" -m venv "venv-$name"
  "venv-$name/bin/pip" install --quiet --disable-pip-version-check "$@"
  touch "venv-$name/.ready"
}

[ $# -gt 0 ] || set -- ort torch
for engine in "$@"; do
  case $engine in
    ort) make_venv ort onnxruntime==1.31.1 openvino==2026.4.1 onnx numpy ;;
    torch) make_venv torch torch==2.13.0 onnx numpy ;;
    tvm) make_venv tvm apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1 onnx xgboost psutil ;;
    iree) make_venv iree 'iree-base-compiler[onnx]' iree-base-runtime ;;
    tiny) make_venv tiny tinygrad==0.14.0 onnx numpy ;;
    jax) make_venv jax jax onnx ;;
    tensorflow) make_venv tensorflow tensorflow-cpu==2.21.0 tf2onnx==1.17.0 onnx ;;
    *) echo "setup.sh: no environment $engine; there are ort, torch, tvm, iree, tiny, jax, tensorflow" >&2; exit 2 ;;
  esac
done
