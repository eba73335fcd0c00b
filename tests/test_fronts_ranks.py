#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_fronts_ranks.py PROGRAM DATA [TEST...]: the example fronts on problems without full column rank."""
import os
import random
import re
import tempfile
import unittest
from fractions import Fraction

from example import data, main, number, run as fronts
from fronts_case import HAVE_SUITESPARSE, Case, arrow, numbers, write_matrix

ORDERINGS = ["natural", "nd"] + ["colamd", "amd", "metis"] * HAVE_SUITESPARSE


def rank_of(rows, cols, entries):
    """Exact, by elimination."""
    a = [[Fraction(0)] * cols for _ in range(rows)]
    for i, j, value in entries:
        a[int(i) - 1][int(j) - 1] += Fraction(value)
    rank = 0
    for j in range(cols):
        pivot = next((i for i in range(rank, rows) if a[i][j]), None)
        if pivot is None:
            continue
        a[rank], a[pivot] = a[pivot], a[rank]
        for i in range(rank + 1, rows):
            if a[i][j]:
                factor = a[i][j] / a[rank][j]
                a[i] = [x - factor * y for x, y in zip(a[i], a[rank])]
        rank += 1
    return rank


def normal_residual(cols, entries, x, b):
    """The largest entry of A'(Ax - b), exact but for one rounding."""
    r = [-Fraction(value) for value in b]
    for i, j, value in entries:
        r[int(i) - 1] += Fraction(value) * Fraction(x[int(j) - 1])
    g = [Fraction(0)] * cols
    for i, j, value in entries:
        g[int(j) - 1] += Fraction(value) * r[int(i) - 1]
    return float(max(map(abs, g)))


class Ranks(Case):
    def found(self, rows, cols, entries, *arguments):
        """The rank that the program finds, and x, a minimum with no more entries than that."""
        b = [i * i % 11 - 5 for i in range(rows)]
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("a.mtx", "b.mtx", "x.mtx")]
            write_matrix(paths[0], rows, cols, [(int(i), int(j), float(value)) for i, j, value in entries])
            with open(paths[1], "w", encoding="ascii") as file:
                file.write(f"%%MatrixMarket matrix array real general\n{rows} 1\n")
                file.writelines(f"{value}\n" for value in b)
            out = self.solve("--file", paths[0], "--rhs", paths[1], "--solution", paths[2], "--check", *arguments)
            x = [float(line[0]) for line in numbers(paths[2])[1:]]
        rank = int(number(r"Rank: (\d+) of", out)) if "Rank" in out else cols
        if "dense rows" not in out:
            self.assertLessEqual(sum(value != 0 for value in x), rank)
        largest = max((abs(float(value)) for _, _, value in entries), default=0)
        limit = largest ** 2 * (rows + cols) * max(map(abs, x)) + largest * rows
        self.assertLessEqual(normal_residual(cols, entries, x, b), 1e-13 * limit)
        return rank, x

    def expect(self, rows, cols, entries, *arguments):
        self.assertEqual(self.found(rows, cols, entries, *arguments)[0], rank_of(rows, cols, entries))

    def test_free_network(self):
        """Heights from their differences alone: all may be raised."""
        matrix = numbers(data("levelling.mtx"))
        rows, cols = int(matrix[0][0]) - 1, int(matrix[0][1])
        differences = [entry for entry in matrix[1:] if entry[0] <= rows]
        for ordering in ORDERINGS:
            with self.subTest(ordering):
                self.assertEqual(self.found(rows, cols, differences, "--ordering", ordering)[0], cols - 1)

    def test_wide(self):
        """Tomography by few rays."""
        pattern = numbers(data("rays.mtx"))
        cols = int(pattern[0][1])
        for rows in (1, 4, 10, 14, 16):
            rays = [(i, j, 1) for i, j in pattern[1:] if i <= rows]
            for ordering in ORDERINGS:
                for overhead in (0, 1e12):
                    with self.subTest((rows, ordering, overhead)):
                        self.expect(rows, cols, rays, "--ordering", ordering, "--overhead", overhead)

    def test_drawn(self):
        """Sparse matrices with columns that are sums of others, rows and columns without an entry."""
        for seed in range(40):
            draw = random.Random(seed)
            rows, cols = draw.randint(1, 40), draw.randint(1, 40)
            share = draw.choice((0.04, 0.1, 0.3))
            columns = [{i: draw.randint(-4, 4) for i in range(rows) if draw.random() < share} for _ in range(cols)]
            for _ in range(cols // 3):
                j, first, second = (draw.randrange(cols) for _ in range(3))
                rows_of = {*columns[first], *columns[second]}
                columns[j] = {i: columns[first].get(i, 0) + columns[second].get(i, 0) for i in rows_of}
            entries = [(i + 1, j + 1, value) for j, column in enumerate(columns) for i, value in column.items()]
            arguments = ["--ordering", draw.choice(ORDERINGS), "--overhead", draw.choice((0, 100, 1000)),
                         "--repeat", draw.choice((1, 2))]
            with self.subTest((seed, *arguments)):
                self.expect(rows, cols, entries, *arguments)

    def test_dense_row(self):
        """The column 7 is twice the first; a dense row is cut into pieces."""
        entries = [(i, j, value) for i, j, value in arrow(200) if j != 7] + [(i, 7, 4) for i in range(1, 201)]
        self.assertEqual(self.found(200, 200, entries)[0], 199)

    def test_tiny_singleton(self):
        """Column 2's last entry is a rounding error of its others."""
        self.assertEqual(self.found(3, 2, [(1, 1, 1), (1, 2, 1), (2, 2, 1e-17)])[0], 1)

    def test_nothing(self):
        for rows, cols, entries in ((1, 1, []), (2, 3, []), (4, 2, [(1, 1, 0), (3, 2, 0)]), (3, 2, [(1, 1, 1)])):
            with self.subTest((rows, cols)):
                self.expect(rows, cols, entries)

    def test_tolerance(self):
        """Columns 1 and 2 of five rows differ by 1e-6; at an end of the exponents' range, too."""
        for scale in (1.0, 1e-300, 1e300):
            entries = [(i, 1, scale) for i in range(1, 6)] + [(i, 2, scale) for i in range(1, 6)]
            entries += [(6, 2, 1e-6 * scale), (6, 3, scale), (1, 3, scale), (2, 3, 2 * scale)]
            for tolerance, rank in ((None, 3), (1e-8, 3), (1e-4, 2), (1e3, 0)):
                with self.subTest((scale, tolerance)):
                    arguments = [] if tolerance is None else ["--tolerance", tolerance * scale]
                    with tempfile.TemporaryDirectory() as folder:
                        path = os.path.join(folder, "a.mtx")
                        write_matrix(path, 6, 3, entries)
                        status, out, err = fronts("--file", path, "--svg", "-", *arguments)
                    self.assertEqual((status, err), (0, ""), out)
                    self.assertEqual(number(r"Rank: (\d+) of 3 columns", out) if rank < 3 else 3, rank)
                    self.assertEqual("Rank" in out, rank < 3)

    @unittest.skipUnless(HAVE_SUITESPARSE, "built without SuiteSparse")
    def test_compare(self):
        pattern = [line for line in numbers(data("rays.mtx"))[1:] if line[0] <= 10]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.mtx")
            write_matrix(path, 12, 16, [(int(i), int(j), 1) for i, j in pattern] + [(11, 1, 1), (12, 1, -1)])
            out = self.solve("--file", path, "--compare")
        ranks = re.findall(r"rank (\d+), \|\|Ax - b\|\| = (\S+?),?(?: |$)", out, re.MULTILINE)
        self.assertEqual(len(ranks), 2, out)
        self.assertEqual(*[rank for rank, _ in ranks])
        self.assertAlmostEqual(*[float(norm) for _, norm in ranks], delta=1e-9)

    def test_memory(self):
        """Blocks of rank 1, with an only row that has other columns: each passes on all of its rows but one, to a front
        that would have none otherwise."""
        size, shared, blocks, entries = 30, 150, 10, []
        for k in range(blocks):
            square = [(i, j) for i in range(1, size + 1) for j in range(1, size + 1)]
            entries += [(k * size + i, k * size + j, i * j) for i, j in square]
            entries += [(k * size + 1, blocks * size + j, 1 + (j % blocks == k)) for j in range(1, shared + 1)]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.mtx")
            write_matrix(path, blocks * size, blocks * size + shared, entries)
            out = self.solve("--file", path, "--ordering", "natural")
            self.assertEqual(number(r"Rank: (\d+) of", out), 2 * blocks)
            needed = number(r"all that the factorization holds +(\S+)", out)
            status, out, err = fronts("--file", path, "--ordering", "natural", "--svg", "-", "--memory", needed - 0.2)
        self.assertEqual(status, 3, out)
        self.assertRegex(err, r"columns that depend on others make fronts larger: the factorization needs \S+ MB")


if __name__ == "__main__":
    main("--size", 3)
