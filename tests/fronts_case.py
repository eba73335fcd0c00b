# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the example fronts share: problems as Matrix Market files, and how they are solved."""
import os
import tempfile
import unittest
from fractions import Fraction

from example import run as fronts

REAL = "%%MatrixMarket matrix coordinate real general\n"
HAVE_SUITESPARSE = "--compare needs SuiteSparse" not in fronts("--compare", "--size", 2, "--svg", "-")[2]


def numbers(path):
    """The lines of a Matrix Market file below its comments, as exact fractions."""
    with open(path, encoding="ascii") as file:
        lines = [line.split() for line in file if not line.startswith("%")]
    return [[Fraction(word) for word in line] for line in lines]


def write_matrix(path, rows, cols, entries):
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{REAL}{rows} {cols} {len(entries)}\n")
        file.writelines(f"{i} {j} {value!r}\n" for i, j, value in entries)


def arrow(n, dense=True):
    """One column and, unless it is left out, one row without a zero, and a diagonal."""
    entries = [(i, 1, 2) for i in range(1, n + 1)] + [(i, i, 1) for i in range(2, n + 1)]
    return entries + [(1, j, 1) for j in range(2, n + 1)] * dense


class Case(unittest.TestCase):
    def solve(self, *arguments):
        status, out, err = fronts("--svg", "-", *arguments)
        self.assertEqual((status, err), (0, ""), out)
        self.assertIn("Normal equations:", out)
        self.assertNotIn("FAILED", out)
        return out

    def solution(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.mtx")
            self.solve("--solution", path, *arguments)
            return [float(line[0]) for line in numbers(path)[1:]]

    def assert_close(self, x, y, tol):
        self.assertEqual(len(x), len(y))
        scale = max(abs(value) for value in y)
        for j, (u, v) in enumerate(zip(x, y)):
            self.assertLessEqual(abs(u - v), tol * scale, f"x[{j}]: {u} and {float(v)}")
