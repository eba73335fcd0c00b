#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_adapters.py BACKEND ROUTINES PROGRAM [ADAPTER]: runs a program that calls a peer of batchqr alone, and with the
adapter loaded before the peer; without ADAPTER, one that is linked with it. The results must be right, and those
routines (with commas between) batchqr's, where it is asked for.
"""
import os
import re
import subprocess
import sys

SKIPPED = 77


def run(program, **environment):
    """What program and library say, and which of batchqr's routines were called."""
    done = subprocess.run([program], env=os.environ | {"BATCHQR_VERBOSE": "1"} | environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode == 2:
        print(done.stdout)
        sys.exit(SKIPPED)  # there is no GPU
    if done.returncode or "right" not in done.stdout:
        sys.exit(f"{environment}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout, set(re.findall(r"^batchqr: (\w+), [0-9.]+ ms$", done.stdout, flags=re.M))


def main():
    backend, routines, program, *adapter = sys.argv[1:]
    preload = {"LD_PRELOAD": os.path.abspath(adapter[0])} if adapter else {}
    runs = [(preload | {"BATCHQR_ADAPTERS_BACKEND": backend}, set(filter(None, routines.split(","))))]
    if adapter:
        runs += [({}, set()), (preload | {"BATCHQR_ADAPTERS_BACKEND": "none"}, set())]
    for environment, expected in runs:
        said, served = run(program, **environment)
        print(f"{environment}: {' '.join(sorted(served)) or 'nothing'} by batchqr")
        if served != expected:
            sys.exit(f"{said}\nexpected {expected}")
        # The libraries in the peers' places say what they did.
        calls = re.search(r"the peer computed (\d+) times", said)
        if calls and backend == "cpu" and (calls.group(1) == "0") != bool(expected):
            sys.exit(f"{said}\nthe peer computed what it should not, or not what it should")


if __name__ == "__main__":
    main()
