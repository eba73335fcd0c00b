#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_hmatrix.py PROGRAM DATA: the example hmatrix compresses the wing and each kind of file to the tolerance, draws
a picture, and says which line of a bad file is wrong. BATCHQR_TEST_BACKEND names the backend."""
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

program, data = sys.argv[1:]
backend = os.environ.get("BATCHQR_TEST_BACKEND", "cpu")


def run(*args):
    done = subprocess.run([program, "--backend", backend, *args], capture_output=True, text=True, check=False)
    print("$ hmatrix --backend", backend, *args, f"(exit status {done.returncode})")
    print(done.stdout + done.stderr, flush=True)
    return done


def expect(condition, what):
    if not condition:
        sys.exit("FAILED: " + what)


with tempfile.TemporaryDirectory() as scratch:
    picture = os.path.join(scratch, "blocks.svg")
    first = run("--points", "3000", "--svg", picture)
    if first.returncode == 3 and "BATCHQR_UNSUPPORTED" in first.stderr:
        sys.exit(77)
    # The exit status says whether the error that the program measures is at or below the tolerance.
    expect(first.returncode == 0, "the wing")
    root = xml.etree.ElementTree.parse(picture).getroot()
    expect(root.tag.endswith("svg") and len(list(root.iter())) > 100, "the picture holds the blocks")

    for name in "sphere.xyz", "torus.off", "box.obj":
        for tolerance in "1e-3", "1e-8":
            done = run("--file", os.path.join(data, name), "--leaf", "20", "--tol", tolerance, "--svg", "-", "--quiet")
            expect(done.returncode == 0, f"{name} to {tolerance}")

    bad_files = {
        "word.xyz": ("0 0 0\n1 2 three\n", 2),
        "short.xyz": ("0 0 0\n1 0 0\n1 2\n", 3),
        "nan.xyz": ("0 0 0\nnan 0 0\n", 2),
        "magic.off": ("FOO\n1 0 0\n0 0 0\n", 1),
        "fewer.off": ("OFF\n3 0 0\n0 0 0\n1 0 0\n", None),
        "vertex.obj": ("v 0 0 0\nv 1 1\n", 2),
        "empty.xyz": ("", None),
        "kind.stl": ("solid\n", None),
    }
    for name, (text, line) in bad_files.items():
        path = os.path.join(scratch, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        done = run("--file", path, "--svg", "-")
        expect(done.returncode == 2, f"{name} is refused")
        where = re.escape(name) + (f":{line}\\b" if line else "")
        expect(re.search(where, done.stderr), f"the message names {name}" + (f" and line {line}" if line else ""))
    expect(run("--file", os.path.join(scratch, "none.xyz")).returncode == 2, "a missing file is refused")
    expect(run("--points", "x").returncode == 2, "a bad option is refused")
