# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What setup, demo and check share.

set -euo pipefail

# --help prints what stands at the head of the tool.
case ${1:-} in -h | --help) sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

export caller_dir=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export root_dir=$PWD

say() { printf '\n== %s\n' "$*"; }
die() { printf '\n%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# The GPU's name, where a driver answers; fails where there is none.
gpu_name() { nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1 | grep .; }

have_gpu() { gpu_name >/dev/null || [ -e /dev/nvidia0 ]; }

# The same places, in the same order, as in kernels/meson.build.
find_nvcc() {
  local place
  for place in nvcc .prefix/cuda/bin/nvcc "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"; do
    if have "$place"; then command -v "$place"; return; fi
  done
  return 1
}

# configure DIRECTORY OPTION...: sets a build directory up, or over again with these options.
configure() {
  local dir=$1; shift
  local log=$dir.log again=()
  if [ -f "$dir/build.ninja" ]; then again=(--reconfigure); fi
  # A directory from elsewhere (the clone was moved) or half made cannot be reconfigured: make it anew.
  if ! meson setup "$dir" ${again[@]+"${again[@]}"} "$@" >"$log" 2>&1; then
    rm -rf "$dir"
    if ! meson setup "$dir" "$@" >"$log" 2>&1; then cat "$log" >&2; return 1; fi
  fi
  rm -f "$log"
}
