#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whether includes point the ways that CONTRIBUTING.md allows (docs/decisions/0023-directions-of-includes.md), and
whether assembly stays in kernels/common/ptx. Arguments: the directory of the sources."""

import pathlib
import re
import sys

SUFFIXES = {".c", ".h", ".cu", ".cuh", ".cpp", ".hpp", ".inc"}
FLOORS = ["ptx", "simt", "matrix", "panel", "eigen"]  # of kernels/common: includes point down
# Where a quoted header is looked for, after the directory of the file that names it.
PLACES = ["include", "kernels", "src", "lab", "tests/support", "tests", "bench", "examples"]
# Files that include what their directory must not, each with its reason in the decision.
EXCEPTIONS = {"bench/gemm.c"}


def find(root, file, name):
    """The included file, relative to the root; None for what the build generates and for others' headers."""
    for place in [file.parent] + [root / place for place in PLACES]:
        if (place / name).is_file():
            return (place / name).resolve().relative_to(root)
    return None


def kernels_may(file, to):
    if to.parts[0] == "include" or to.as_posix() in ("kernels/family.h", "kernels/costs.h"):
        return True
    if to.parts[:2] == ("kernels", "common"):
        if file.parts[:2] != ("kernels", "common"):
            return True
        return FLOORS.index(to.parts[2]) <= FLOORS.index(file.parts[2])
    return to.parent == file.parent  # a folder has what it uses alone


def src_may(file, to):
    if to.parts[0] == "kernels":
        return to.suffix == ".h"
    return to.parts[0] in ("include", "src")


def bench_may(file, to):
    return to.parts[0] in ("include", "bench", "lab") or to.parts[:2] == ("tests", "support") or (
        to.as_posix() == "src/inspect.h")


def adapters_may(file, to):
    return to.parts[0] in ("include", "adapters")


def communicators_may(file, to):
    return to.parts[0] in ("include", "communicators")


def examples_may(file, to):
    return to.parts[0] in ("include", "examples")


RULES = {
    "include": lambda file, to: to.parts[0] == "include",
    "kernels": kernels_may,
    "src": src_may,
    "bench": bench_may,
    "examples": examples_may,
    "adapters": adapters_may,
    "communicators": communicators_may,
    "python": lambda file, to: to.parts[0] in ("include", "python"),
}


def without_comments(text):
    return re.sub(r"/\*.*?\*/", lambda c: "\n" * c.group(0).count("\n"), text, flags=re.S)


def check(root, file):
    """What is wrong in the file, a line each."""
    name = file.relative_to(root)
    text = without_comments(file.read_text(encoding="utf-8"))
    for number, line in enumerate(text.splitlines(), 1):
        included = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
        to = included and find(root, file, included.group(1))
        if to and name.as_posix() not in EXCEPTIONS and not RULES[name.parts[0]](name, to):
            yield f"{name}:{number}: includes {to}"
        if name.parts[0] == "kernels" and name.parts[:3] != ("kernels", "common", "ptx"):
            if re.search(r"\basm\b|__syncthreads|__syncwarp|__threadfence", line):
                yield f"{name}:{number}: assembly and barriers belong to kernels/common/ptx"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found, checked = [], 0
    for top in RULES:
        for file in sorted((root / top).rglob("*")):
            if file.suffix in SUFFIXES and file.is_file():
                found += check(root, file)
                checked += 1
    print("\n".join(found + [f"{checked} files, {len(found)} wrong"]))
    return 1 if found or checked < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
