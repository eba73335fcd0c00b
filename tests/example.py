# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the example programs share: they are called as test_NAME.py PROGRAM [DATA [TEST...]].

BATCHQR_TEST_BACKEND names the backend.
"""
import os
import re
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
DATA = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else ""
BACKEND = os.environ.get("BATCHQR_TEST_BACKEND", "cpu")
ON_GPU = BACKEND == "cuda"
SKIPPED = 77


def run(*arguments):
    """Runs the program; returns the exit status, the output and the messages."""
    done = subprocess.run([PROGRAM, "--backend", BACKEND, *map(str, arguments)], capture_output=True, text=True,
                          timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


def run_on_full_disk(*arguments):
    """Runs the program with an output that has no room; returns the exit status and the messages."""
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([PROGRAM, "--backend", BACKEND, *map(str, arguments)], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    return done.returncode, done.stderr


def data(name):
    return os.path.join(DATA, name)


def number(pattern, text):
    found = re.search(pattern, text)
    assert found, f"no {pattern!r} in:\n{text}"
    return float(found.group(1))


def main(*small):
    """Runs the tests, where the program finds a device for the small problem that these arguments ask for."""
    if ON_GPU and "BATCHQR_UNSUPPORTED" in run(*small, "--svg", "-")[2]:
        print("skipped: no device")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
