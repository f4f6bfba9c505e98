#!/usr/bin/env bash
# Gets what some of the tests use and are skipped without: a second C compiler, a browser for the page of `weft report`, QEMU for
# programs on other processors, OpenCL and Vulkan on the processor, and a simulator of OpenCL devices. They are Debian's packages; where there is no apt, or no right to use it, it is only said what is missing.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive

is_here() {
  for name in "$@"; do command -v "$name" > /dev/null && return; done
  return 1
}

missing=()
is_here clang || missing+=(clang)
is_here "${CHROMIUM:-chromium}" chromium-browser google-chrome google-chrome-stable chrome || missing+=(chromium)
is_here qemu-x86_64 qemu-x86_64-static || missing+=(qemu-user)
compgen -G "/etc/OpenCL/vendors/*.icd" > /dev/null || missing+=(pocl-opencl-icd ocl-icd-libopencl1)
is_here oclgrind || missing+=(oclgrind)
compgen -G "/usr/share/vulkan/icd.d/*.json" > /dev/null || missing+=(mesa-vulkan-drivers libvulkan1)
[ ${#missing[@]} -eq 0 ] && exit

if is_here apt-get && [ "$(id -u)" = 0 ]; then
  echo "installing ${missing[*]}"
  if apt-get update -qq && apt-get install -y -qq "${missing[@]}" > /dev/null; then exit; fi
fi
echo "there is no ${missing[*]}, and it can't be installed here: what needs it is not tested" >&2
