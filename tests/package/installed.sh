#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# installed.sh BUILD SOURCE CC CXX: installs the build into a scratch directory and uses it from there through
# pkg-config: from C and C++, shared and static.
set -eu
build=$1 source=$2 cc=$3 cxx=$4

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
meson install -C "$build" --no-rebuild --quiet --destdir "$scratch"

pc=$(find "$scratch" -name batchqr.pc)
prefix=$scratch$(sed -n 's/^prefix=//p' "$pc")
export PKG_CONFIG_PATH="${pc%/*}${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
flags() { pkg-config --define-variable=prefix="$prefix" "$@" batchqr; }
libdir=$(flags --variable=libdir)

try() {
  name=$1
  shift
  echo "$name: $*"
  "$@" -o "$scratch/$name"
  LD_LIBRARY_PATH="$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$scratch/$name"
}

# The flags are words.
# shellcheck disable=SC2046
if [ -e "$libdir/libbatchqr.so" ]; then
  try shared-c "$cc" -std=c11 "$source/examples/quickstart.c" $(flags --cflags --libs) -lm
  try shared-cxx "$cxx" -std=c++17 "$source/tests/package/user.cpp" $(flags --cflags --libs)
fi
# shellcheck disable=SC2046
if [ -e "$libdir/libbatchqr.a" ]; then
  try static-c "$cc" -std=c11 "$source/examples/quickstart.c" $(flags --cflags) "$libdir/libbatchqr.a" \
    $(flags --static --libs | sed "s/-lbatchqr//") -lm
fi
