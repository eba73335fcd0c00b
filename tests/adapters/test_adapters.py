#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_adapters.py BACKEND PROGRAM ADAPTER ROUTINE...: runs a program that calls a peer of batchqr alone, and behind the
adapter. Both must be right, and batchqr must have computed the routines where it is asked for, and nothing else.
"""
import os
import re
import subprocess
import sys

SKIPPED = 77


def run(program, **environment):
    """What the program and the library said."""
    done = subprocess.run([program], env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if done.returncode == 2:
        print(done.stdout)
        sys.exit(SKIPPED)  # there is no GPU
    if done.returncode:
        sys.exit(f"{environment}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def served(output):
    """The operations that batchqr printed."""
    return set(re.findall(r"^batchqr: (\w+), [0-9.]+ ms$", output, flags=re.M))


def main():
    backend, program, adapter, *routines = sys.argv[1:]
    alone = run(program, BATCHQR_VERBOSE="1")
    behind = run(program, BATCHQR_VERBOSE="1", LD_PRELOAD=adapter, BATCHQR_ADAPTERS_BACKEND=backend)
    print(alone + behind)
    if "batchqr" in alone:
        sys.exit("batchqr computed without the adapter")
    if "right" not in alone or "right" not in behind:
        sys.exit("results are wrong")
    print("served:", *sorted(served(behind)))
    if served(behind) != set(routines):
        sys.exit(f"expected {routines}")


if __name__ == "__main__":
    main()
