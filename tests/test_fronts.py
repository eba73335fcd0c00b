#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_fronts.py PROGRAM DATA [TEST...]: runs the example fronts as its users do; see example.py."""
import os
import re
import resource
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from fractions import Fraction

from example import ON_GPU, PROGRAM, data, main, number, run as fronts, run_on_full_disk
from fronts_case import HAVE_SUITESPARSE, REAL, Case, arrow, numbers, write_matrix

with open(PROGRAM, "rb") as binary:
    SANITIZED = b"__asan_init" in binary.read()


def least_squares(entries, cols, b):
    """Solves the normal equations in exact arithmetic; entries are (row, column, value) from 1."""
    rows = [{} for _ in b]
    for i, j, value in entries:
        rows[int(i) - 1][int(j) - 1] = rows[int(i) - 1].get(int(j) - 1, 0) + value
    system = [[sum(row.get(i, 0) * row.get(j, 0) for row in rows) for j in range(cols)] for i in range(cols)]
    for i in range(cols):
        system[i].append(sum(row.get(i, 0) * value for row, value in zip(rows, b)))
    for k in range(cols):
        for i in range(cols):
            factor = system[i][k] / system[k][k]
            if i != k and factor:
                system[i] = [x - factor * y for x, y in zip(system[i], system[k])]
    return [system[k][cols] / system[k][k] for k in range(cols)]


class Grids(Case):
    def test_accuracy(self):
        for arguments in (["--size", 12], ["--size", 7, "--noise", 1], ["--grid", "2d", "--size", 40]):
            with self.subTest(arguments):
                out = self.solve(*arguments)
                self.assertLess(number(r"\|\|A'\(Ax - b\)\|\| / \(\|\|A\|\| \|\|Ax - b\|\|\) +(\S+)", out), 1e-12)
                self.assertIn("from the factorization alone", out)

    def test_known_solution(self):
        out = self.solve("--size", 14, "--noise", 0)
        self.assertLess(number(r"distance to the x that made b +(\S+),", out), 1e-13)

    def test_noise_is_reduced(self):
        out = self.solve("--size", 14, "--noise", 0.01)
        distance = number(r"distance to the x that made b +(\S+),", out)
        self.assertTrue(1e-4 < distance < 0.01, out)

    def test_dense(self):
        for arguments in (["--size", 8], ["--grid", "2d", "--size", 25, "--noise", 2]):
            with self.subTest(arguments):
                out = self.solve("--check", *arguments)
                self.assertLess(number(r"LAPACK's dgels: (\S+),", out), 1e-11)

    def test_small(self):
        for grid in ("2d", "3d"):
            for size in (1, 2, 3):
                with self.subTest((grid, size)):
                    self.solve("--check", "--grid", grid, "--size", size)

    def test_overhead(self):
        few = None
        for overhead in (0, 1e3, 1e5, 1e12):
            with self.subTest(overhead):
                out = self.solve("--check", "--size", 7, "--overhead", overhead)
                count = number(r"fronts +(\d+) on", out)
                self.assertTrue(few is None or count < few, out)
                few = count
        self.assertEqual(few, 1)  # one dense matrix

    def test_repeat(self):
        self.assert_close(self.solution("--size", 9, "--repeat", 3), self.solution("--size", 9), 0)

    def test_threads(self):
        self.solve("--size", 10, "--threads", 1)
        self.solve("--size", 10, "--threads", 3)

    def test_one_batch_for_each_level(self):
        out = self.solve("--size", 12)
        levels = re.findall(r"^ +\d+ +(\d+) +\d+ x \d+ .* (\S+)$", out, re.MULTILINE)
        self.assertEqual(sum(int(count) for count, _ in levels), number(r"fronts +(\d+) on", out))
        self.assertEqual(max(int(count) for count, _ in levels), number(r"the largest batch has (\d+)", out))
        self.assertTrue(all(families.startswith("geqrf_") for _, families in levels), out)

    def test_memory(self):
        status, out, err = fronts("--size", 12, "--memory", 1, "--svg", "-")
        self.assertEqual(status, 3, out)
        self.assertRegex(err, r"^fronts: the factorization needs \S+ MB.*, and may have 1.0")

    def test_quiet(self):
        self.assertEqual(len(self.solve("--size", 5, "--quiet").splitlines()), 1)


class Orderings(Case):
    def test_all(self):
        reference = self.solution("--size", 8, "--ordering", "natural")
        for ordering in ["nd"] + ["colamd", "amd", "metis"] * HAVE_SUITESPARSE:
            with self.subTest(ordering):
                self.assert_close(self.solution("--size", 8, "--ordering", ordering), reference, 1e-12)

    def test_work(self):
        work = {ordering: number(r"work +(\S+) GFLOP", self.solve("--size", 12, "--ordering", ordering))
                for ordering in ("natural", "nd")}
        self.assertLess(work["nd"], 0.3 * work["natural"])

    @unittest.skipIf(HAVE_SUITESPARSE, "built with SuiteSparse")
    def test_missing(self):
        for arguments in (["--ordering", "colamd"], ["--compare"]):
            status, _, err = fronts("--size", 3, *arguments)
            self.assertEqual(status, 2)
            self.assertIn("needs SuiteSparse", err)

    @unittest.skipUnless(HAVE_SUITESPARSE, "built without SuiteSparse")
    def test_compare(self):
        out = self.solve("--size", 8, "--compare")
        self.assertLess(number(r"relative difference of x: (\S+)", out), 1e-12)


class Files(Case):
    def test_files(self):
        for name, rows, cols in (("levelling.mtx", 19, 12), ("net.mtx", 25, 25), ("rays.mtx", 27, 16)):
            for ordering in ("auto", "natural", "nd"):
                with self.subTest((name, ordering)):
                    out = self.solve("--check", "--file", data(name), "--ordering", ordering)
                    self.assertIn(f"{rows} x {cols}, ", out)
                    self.assertLess(number(r"LAPACK's dgels: (\S+),", out), 1e-11)

    def test_rhs(self):
        matrix, b = numbers(data("levelling.mtx")), numbers(data("levelling_b.mtx"))
        exact = least_squares(matrix[1:], int(matrix[0][1]), [line[0] for line in b[1:]])
        x = self.solution("--file", data("levelling.mtx"), "--rhs", data("levelling_b.mtx"))
        self.assert_close(x, exact, 1e-13)

    def test_symmetric(self):
        matrix = numbers(data("net.mtx"))
        upper = [(j, i, value) for i, j, value in matrix[1:] if i != j]
        entries, cols = matrix[1:] + upper, int(matrix[0][1])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "b.mtx")
            with open(path, "w", encoding="ascii") as file:
                file.write(f"%%MatrixMarket matrix array integer general\n{cols} 1\n")
                file.writelines(f"{j % 7 - 3}\n" for j in range(cols))
            exact = least_squares(entries, cols, [Fraction(j % 7 - 3) for j in range(cols)])
            self.assert_close(self.solution("--file", data("net.mtx"), "--rhs", path), exact, 1e-13)

    def test_unconnected(self):
        """Two components, a row without an entry, a row of zeros."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.mtx")
            with open(path, "w", encoding="ascii") as file:
                file.write(REAL + "7 3 6\n1 1 2\n2 1 1\n3 2 1\n4 3 5\n5 2 -1\n7 3 0\n")
            self.solve("--file", path, "--check")

    def test_many_components(self):
        with tempfile.TemporaryDirectory() as folder:
            path, cols = os.path.join(folder, "a.mtx"), 30000
            with open(path, "w", encoding="ascii") as file:
                file.write(f"{REAL}{2 * cols} {cols} {2 * cols}\n")
                file.writelines(f"{i + 1} {i % cols + 1} {i % 5 + 1}\n" for i in range(2 * cols))
            out = self.solve("--file", path, "--ordering", "nd")
            self.assertEqual(number(r"largest batch has (\d+)", out), cols)

    def test_scales(self):
        for scale in ("e-150", "e150"):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "a.mtx")
                with open(path, "w", encoding="ascii") as file:
                    file.write(REAL + "4 2 6\n")
                    for entry in ("1 1 1", "2 1 2", "2 2 3", "3 2 1", "4 1 -1", "4 2 1"):
                        file.write(f"{entry}{scale}\n")
                out = self.solve("--file", path, "--noise", 0)
                self.assertLess(number(r"distance to the x that made b +(\S+),", out), 1e-13)

    def test_ends_of_the_range(self):
        entries = ((1, 1, 1), (1, 2, -1.7), (2, 1, 1), (2, 2, 1), (3, 1, 0.5))
        for a, b in (("e308", "e300"), ("e308", "e308"), ("e-308", "e-300"), ("e-308", "e-308"), ("e0", "e308")):
            with self.subTest((a, b)), tempfile.TemporaryDirectory() as folder:
                paths = [os.path.join(folder, name) for name in ("a.mtx", "b.mtx")]
                rhs = [f"{value}{b}" for value in (1, -0.5, 1.5)]
                with open(paths[0], "w", encoding="ascii") as file:
                    file.write(f"{REAL}3 2 5\n" + "".join(f"{i} {j} {value}{a}\n" for i, j, value in entries))
                with open(paths[1], "w", encoding="ascii") as file:
                    file.write("%%MatrixMarket matrix array real general\n3 1\n" + "\n".join(rhs) + "\n")
                self.solve("--file", paths[0])
                exact = least_squares([(i, j, Fraction(f"{value}{a}")) for i, j, value in entries], 2,
                                      [Fraction(value) for value in rhs])
                self.assert_close(self.solution("--file", paths[0], "--rhs", paths[1]), exact, 1e-14)


def measured_chain(n, dense):
    """A chain of n unknowns, and `dense` rows of very different size that couple most of them."""
    entries, row = [], 0
    for j in range(1, n + 1):
        row += 1
        entries.append((row, j, 1 + j % 7))
        if j < n:
            row += 1
            entries += [(row, j, -1), (row, j + 1, 1)]
    for k in range(dense):
        row += 1
        entries += [(row, j, 1e3 ** (k - 1) * (j * (k + 3) % 11 - 5)) for j in range(1, n + 1) if (j + k) % 4]
    return row, entries


class Structure(Case):
    """Column singletons and dense rows, as SuiteSparse's collection has them."""

    def file(self, rows, cols, entries, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.mtx")
            write_matrix(path, rows, cols, entries)
            return fronts("--file", path, "--svg", "-", *arguments)

    def solved(self, *arguments):
        status, out, err = self.file(*arguments)
        self.assertEqual((status, err), (0, ""), out)
        self.assertNotIn("FAILED", out)
        return out

    def test_arrow(self):
        """Without its dense row the matrix has no full rank."""
        out = self.solved(700, 700, arrow(700), "--check")
        self.assertEqual(number(r"dense rows +(\d+),", out), 1)
        self.assertLess(number(r"LAPACK's dgels: (\S+),", out), 1e-12)
        self.assertLess(number(r"work +(\S+) GFLOP", out), 0.01)

    def test_large_arrow(self):
        """Its dense front would have 5 GB. The process has libraries, threads and, on a GPU, CUDA's context besides."""
        memory = 100
        out = self.solved(25000, 25000, arrow(25000), "--memory", memory)
        self.assertLess(number(r"largest use of this process +(\S+)", out), memory + 200 if not ON_GPU else 4000)

    def test_dense_rows(self):
        for dense in (1, 3):
            for ordering in ("auto", "nd", "natural"):
                with self.subTest((dense, ordering)):
                    rows, entries = measured_chain(600, dense)
                    out = self.solved(rows, 600, entries, "--check", "--ordering", ordering)
                    self.assertEqual(number(r"dense rows +(\d+),", out), dense)

    def test_only_dense_rows(self):
        """Then R is dense whatever is done, and no row is cut."""
        entries = [(i, j, (i * j) % 17 + (i == j) * 50) for i in range(1, 321) for j in range(1, 301)]
        self.assertNotIn("dense rows", self.solved(320, 300, entries, "--check"))

    def test_singletons(self):
        n = 500
        upper = [(j, k, 2 if j == k else 0.5) for j in range(1, n + 1) for k in (j, j + 1, j + 9) if k <= n]
        out = self.solved(n, n, upper, "--check")
        self.assertEqual(number(r"singletons +(\d+) columns", out), n - 1)
        rows, entries = measured_chain(60, 0)
        slack = [(2 * k, 60 + k, -3) for k in range(1, 41)]  # of differences, which leaves the unknowns' own rows
        out = self.solved(rows, 100, entries + slack, "--check")
        self.assertGreaterEqual(number(r"singletons +(\d+) columns", out), 40)

    def test_singletons_solution(self):
        """A dense row that a singleton takes along couples nothing."""
        out = self.solved(701, 701, arrow(700) + [(1, 701, 1), (701, 1, 3)], "--check")
        self.assertNotIn("dense rows", out)
        self.assertGreater(number(r"singletons +(\d+) columns", out), 600)


class Memory(Case):
    @unittest.skipIf(SANITIZED, "the address sanitizer needs terabytes of addresses")
    def test_announced_rows(self):
        """A short file that announces much: a process with 1.5 GB of addresses says no, without trying."""
        limit = (resource.RLIMIT_AS, (3 * 2 ** 29, 3 * 2 ** 29))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.mtx")
            write_matrix(path, 2147483647, 2, [(1, 1, 1), (2, 2, 1)])
            for arguments in (["--file", path], ["--file", path, "--memory", 500], ["--size", 700]):
                with self.subTest(arguments):
                    done = subprocess.run([PROGRAM, "--svg", "-", "--threads", "1", *map(str, arguments)], text=True,
                                          capture_output=True, check=False, timeout=60,
                                          preexec_fn=lambda: resource.setrlimit(*limit))
                    self.assertEqual(done.returncode, 3, done.stdout)
                    self.assertRegex(done.stderr, r"^fronts: .* needs? \S+ MB, and may have \d+\.\d")

    def test_dense_factor(self):
        """R is dense, and is refused before it is there, whatever order SuiteSparse finds."""
        entries = [(i, i, 1) for i in range(1, 4001)]
        entries += [(4000 + k, j, 1) for k in range(1, 41) for j in range(1, 4001) if (j + k) % 3]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.mtx")
            write_matrix(path, 4040, 4000, entries)
            for ordering in ("natural",) + ("auto", "metis") * HAVE_SUITESPARSE:
                with self.subTest(ordering):
                    status, out, err = fronts("--file", path, "--memory", 20, "--ordering", ordering)
                    self.assertEqual(status, 3, out)
                    self.assertRegex(err, r"^fronts: the (factorization|ordering metis) needs .* MB.*, and may have 20")


class Picture(Case):
    def test_svg(self):
        with tempfile.TemporaryDirectory() as folder:
            svg = os.path.join(folder, "fronts.svg")
            name = os.path.join(folder, "a<b>&c.mtx")  # a name that XML would take amiss
            with open(data("rays.mtx"), encoding="ascii") as source, open(name, "w", encoding="ascii") as copy:
                copy.write(source.read())
            for arguments in (["--size", 12], ["--file", name]):
                status, out, err = fronts("--svg", svg, *arguments)
                self.assertEqual((status, err), (0, ""), out)
                root = ElementTree.parse(svg).getroot()
                space = "{http://www.w3.org/2000/svg}"
                cells = [rect for rect in root.iter(space + "rect") if rect.get("class") == "fronts"]
                texts = [text.text for text in root.iter(space + "text") if text.get("text-anchor") == "middle"]
                counts = [int(text) for text in texts if text.isdigit()]
                self.assertEqual(len(cells), len(counts))
                self.assertEqual(sum(counts), number(r"fronts +(\d+) on", out))
            self.assertTrue(any("a<b>&c.mtx" in text.text for text in root.iter(space + "text")))

    def test_unwritable(self):
        for arguments in (["--svg", "/nonexistent/file"], ["--svg", "-", "--solution", "/nonexistent/file"]):
            status, _, err = fronts("--size", 3, *arguments)
            self.assertEqual(status, 2)
            self.assertIn("/nonexistent/file: cannot write", err)

    def test_full_disk(self):
        status, _, err = fronts("--size", 3, "--svg", "/dev/full")
        self.assertEqual(status, 2)
        self.assertIn("/dev/full: cannot write", err)
        for arguments in (["--help"], ["--size", 3, "--svg", "-", "--quiet"]):
            status, err = run_on_full_disk(*arguments)
            self.assertEqual(status, 2)
            self.assertIn("standard output: cannot write", err)


class Input(unittest.TestCase):
    def read(self, text, rhs=None):
        with tempfile.TemporaryDirectory() as folder:
            path, extra = os.path.join(folder, "a.mtx"), []
            with open(path, "wb") as file:
                file.write(text.encode() if isinstance(text, str) else text)
            if rhs is not None:
                extra = ["--rhs", os.path.join(folder, "b.mtx")]
                with open(extra[1], "w", encoding="ascii") as file:
                    file.write(rhs)
            status, out, err = fronts("--file", path, "--svg", "-", "--quiet", *extra)
            return status, out, err.replace(folder + os.sep, "").strip()

    def test_accepted(self):
        for text in (
            REAL + "2 1 2\n1 1 1\n2 1 2\n",
            "%%matrixmarket MATRIX Coordinate REAL General\r\n% a comment\r\n\r\n2 1 2\r\n1 1 1e0\r\n2 1 .5\r\n",
            REAL + "3 2 4\n% comments may be anywhere\n1 1 1\n\n2 2 2\n1 1 1\n   3 2\t3   ",
            "%%MatrixMarket matrix coordinate integer symmetric\n2 2 3\n1 1 4\n2 1 1\n2 2 4\n",
            "%%MatrixMarket matrix coordinate pattern general\n2 2 3\n1 1\n2 1\n2 2\n",
        ):
            with self.subTest(text):
                status, out, err = self.read(text)
                self.assertEqual((status, err), (0, ""), out)

    def test_duplicates(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.mtx")
            with open(path, "w", encoding="ascii") as file:
                file.write(REAL + "3 2 5\n1 1 1\n2 2 2\n1 1 1\n3 2 3\n1 1 -5\n")
            status, out, err = fronts("--file", path, "--check", "--svg", "-")
            self.assertEqual((status, err), (0, ""), out)
            self.assertIn("3 x 2, 3 entries", out)
            self.assertIn("2 entries of the file were added to one at the same place", out)

    def test_rejected(self):
        for text, message in (
            ("", "a.mtx:1: a Matrix Market file begins with '%%MatrixMarket matrix coordinate', not ''"),
            ("1 2 3\n", "a.mtx:1: a Matrix Market file begins with '%%MatrixMarket matrix coordinate', not '1 2 3'"),
            ("%%MatrixMarket matrix array real general\n", "a.mtx:1: the format should be 'coordinate': 'array'"),
            ("%%MatrixMarket matrix coordinate complex general\n",
             "a.mtx:1: the entries should be real, integer or pattern: 'complex'"),
            ("%%MatrixMarket matrix coordinate real hermitian\n",
             "a.mtx:1: the symmetry should be general or symmetric: 'hermitian'"),
            ("%%MatrixMarket matrix coordinate real\n", "a.mtx:1: the symmetry should be general or symmetric: ''"),
            (REAL, "a.mtx:1: the file ends before its sizes"),
            (REAL + "3 2\n", "a.mtx:2: rows, columns and the number of entries should be here: '3 2'"),
            (REAL + "3 2 -4\n", "a.mtx:2: rows, columns and the number of entries should be here: '3 2 -4'"),
            (REAL + "3 2 4 1\n", "a.mtx:2: the line should end before '1'"),
            (REAL + "99999999999 2 4\n", "a.mtx:2: rows, columns and the number of entries should be here"),
            (REAL + "0 2 0\n", "a.mtx:2: 0 rows and 2 columns: least squares need a row and a column"),
            (REAL + "2 0 0\n", "a.mtx:2: 2 rows and 0 columns: least squares need a row and a column"),
            ("%%MatrixMarket matrix coordinate real symmetric\n3 2 1\n1 1 1\n",
             "a.mtx:2: a symmetric matrix of 3 rows and 2 columns"),
            (REAL + "2 2 3\n1 1 1\n% end\n2 2 1\n",
             "a.mtx:5: the file ends after 2 of the 3 entries that line 2 announces"),
            (REAL + "2 2 1\n1 1 1\n2 2 1\n", "a.mtx:4: more entries than the 1 that line 2 announces"),
            (REAL + "2 2 900000000000\n1 1 1\n", "a.mtx:3: the file ends after 1 of the 900000000000 entries"),
            (REAL + "2 2 2\n1 1 1\n3 2 1\n", "a.mtx:4: row '3' is not in 1 .. 2"),
            (REAL + "2 2 2\n1 1 1\n1 0 1\n", "a.mtx:4: column '0' is not in 1 .. 2"),
            (REAL + "2 2 2\n1 -1 1\n", "a.mtx:3: column '-1' is not in 1 .. 2"),
            (REAL + "2 2 2\n1.5 1 1\n", "a.mtx:3: row '1.5' is not in 1 .. 2"),
            (REAL + "2 2 2\n1\n", "a.mtx:3: the line ends before the column"),
            (REAL + "2 2 2\n1 1\n", "a.mtx:3: the line ends before the entry's value"),
            (REAL + "2 2 2\n1 1 x\n", "a.mtx:3: the value is not a number: 'x'"),
            (REAL + "2 2 2\n1 1 nan\n", "a.mtx:3: the value is not finite: 'nan'"),
            (REAL + "2 1 3\n1 1 1e308\n1 1 1e308\n2 1 1\n", "a.mtx: the sum of the entries (1, 1) is not finite"),
            (REAL + "2 2 2\n1 1 1e999\n", "a.mtx:3: the value is not finite: '1e999'"),
            (REAL + "2 2 2\n1 1 1 0\n", "a.mtx:3: the line should end before '0'"),
            ("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1 1\n",
             "a.mtx:3: the line should end before '1'"),
            ("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n",
             "a.mtx:3: entry (1, 2) is above the diagonal of a symmetric matrix"),
            (REAL.encode() + b"2 2 2\n1 1 \0\n", "a.mtx:3: a zero byte: this is not a text file"),
        ):
            with self.subTest(text):
                status, out, err = self.read(text)
                self.assertEqual(status, 2, out)
                self.assertTrue(err.startswith("fronts: " + message), err)
                self.assertLessEqual(len(err.splitlines()), 1)

    def test_rejected_rhs(self):
        matrix, array = REAL + "2 1 2\n1 1 1\n2 1 2\n", "%%MatrixMarket matrix array real general\n"
        for text, message in (
            (matrix, "b.mtx:1: the format should be 'array': 'coordinate'"),
            (array + "3 1\n", "b.mtx:2: 3 rows and 1 columns; the matrix needs 2 rows and 1 column"),
            (array + "2 1\n1\n", "b.mtx:3: the file ends after 1 of the 2 numbers that line 2 announces"),
            (array + "2 1\n1\n2\n3\n", "b.mtx:5: more numbers than the 2 that line 2 announces"),
            (array + "2 1\n1\ninf\n", "b.mtx:4: the value is not finite: 'inf'"),
            (array + "2 1\n1 2\n", "b.mtx:3: the line should end before '2'"),
        ):
            with self.subTest(text):
                status, _, err = self.read(matrix, text)
                self.assertEqual(status, 2)
                self.assertTrue(err.startswith("fronts: " + message), err)

    def test_missing(self):
        status, _, err = fronts("--file", "/nonexistent/a.mtx")
        self.assertEqual(status, 2)
        self.assertIn("/nonexistent/a.mtx: cannot open", err)

    @unittest.skipIf(ON_GPU, "there is a GPU")
    def test_no_gpu(self):
        """That is said before anything is done."""
        status, out, err = fronts("--backend", "cuda", "--size", 200)
        if status == 2:
            self.assertEqual(out, "")
            self.assertIn("the backend could not be opened", err)

    def test_usage(self):
        for arguments in (["--size", "0"], ["--size", "ten"], ["--grid", "4d"], ["--grid", "3d", "--size", "1000"],
                          ["--ordering", "best"], ["--overhead", "-1"], ["--tolerance", "-1"], ["--noise", "nan"], ["--backend", "tpu"],
                          ["--threads", "-1"], ["--repeat", "0"], ["--memory", "0"], ["--bogus"], ["--size"], ["stray"],
                          ["--rhs", "b.mtx"], ["--file", "a.mtx", "--size", "3"], ["--size", "100", "--check"]):
            with self.subTest(arguments):
                status, out, err = fronts(*arguments)
                self.assertEqual((status, out), (2, ""))
                self.assertIn("fronts: ", err)

    def test_help(self):
        status, out, err = fronts("--help")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(fronts("-h"), (status, out, err))
        for option in ("grid", "size", "file", "rhs", "noise", "ordering", "overhead", "tolerance", "backend", "threads", "memory",
                       "repeat", "solution", "svg", "check", "compare", "quiet", "help"):
            self.assertIn("--" + option, out)


if __name__ == "__main__":
    main("--size", 3)
