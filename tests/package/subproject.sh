#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# subproject.sh SOURCE: a project that has batchqr below subprojects/ finds it as a dependency.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/user/subprojects"
ln -s "$1" "$scratch/user/subprojects/batchqr"
cp "$1/examples/quickstart.c" "$scratch/user/"
cat >"$scratch/user/meson.build" <<'MESON'
project('user', 'c', default_options: ['c_std=c11'])
batchqr = dependency('batchqr', version: '>= 0.1', fallback: 'batchqr')
m = meson.get_compiler('c').find_library('m')
test('quickstart', executable('quickstart', 'quickstart.c', dependencies: [batchqr, m]))
MESON
# The CPU backend alone: it is the way in that is tested here.
meson setup "$scratch/build" "$scratch/user" -Dbatchqr:cuda=disabled
ninja -C "$scratch/build"
meson test -C "$scratch/build" --print-errorlogs
