#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_reconstruct.py PROGRAM: runs the example reconstruct as its users do; see example.py."""
import os
import re
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from example import ON_GPU, main, number, run as reconstruct, run_on_full_disk


def rows(out):
    """The table of errors: points, least and most neighbours, steps, errors of the gradient and the convection."""
    found = re.findall(r"^ +(\d+) +(\d+)-(\d+) +(\d+) +(\S+e\S+)(?: +\S+)? +(\S+e\S+)", out, re.M)
    return [tuple(map(float, row)) for row in found]


class Convergence(unittest.TestCase):
    def run_program(self, *arguments):
        status, out, err = reconstruct("--svg", "-", *arguments)
        self.assertEqual((status, err), (0, ""), out)
        return out

    def test_order(self):
        out = self.run_program("--points", 12000, "--levels", 2)
        self.assertGreater(number(r"Order of the errors: (\S+) of the gradient", out), 1.8)
        self.assertGreater(number(r"gradient, (\S+) of the convection", out), 1.8)
        coarse, fine = rows(out)
        self.assertEqual((coarse[0], fine[0]), (1500, 12000))
        for points, least, most, steps, gradient, convection in (coarse, fine):
            self.assertGreaterEqual(least, 20)
            self.assertLessEqual(most, 60)
            self.assertGreater(most, least + 20)
            self.assertGreater(steps, 5)
            # 0.13 and 0.15 at 1500 points; a broken solver gives more, or nothing like it
            self.assertLess(gradient, 17 * points ** (-2 / 3))
            self.assertLess(convection, 20 * points ** (-2 / 3))

    def test_steps(self):
        """The error hardly depends on the length of the time steps."""
        errors = [rows(self.run_program("--points", 4000, "--levels", 1, "--cfl", cfl))[0][5] for cfl in (0.1, 0.4)]
        self.assertLess(abs(errors[0] / errors[1] - 1), 0.2)

    def test_fields(self):
        """More right-hand sides are that many fields, each convected as if it were alone."""
        out = self.run_program("--points", 8000, "--levels", 2, "--fields", 5)
        self.assertGreater(number(r"gradient, (\S+) of the convection", out), 1.8)

    def test_threads(self):
        runs = [rows(self.run_program("--points", 2000, "--levels", 1, "--threads", n)) for n in (1, 3)]
        self.assertEqual(runs[0], runs[1])

    def test_too_coarse(self):
        """Waves that a cloud cannot resolve any more: the order is told to be wrong."""
        status, out, _ = reconstruct("--points", 4000, "--levels", 2, "--time", 4, "--svg", "-", "--quiet")
        self.assertEqual(status, 1)
        self.assertIn("FAILED", out)

    def test_report(self):
        out = self.run_program("--points", 3000, "--levels", 1)
        self.assertGreater(number(r"  step +(\S+) us", out), 0)
        parts = [float(share) for share in re.findall(r"us +(\S+) %", out)]
        self.assertEqual(len(parts), 3)
        self.assertAlmostEqual(sum(parts), 100, delta=0.3)
        self.assertEqual(ON_GPU, "a CUDA graph" in out)
        if ON_GPU:
            self.assertEqual(number(r"allocated after the first step +(\S+) B", out), 0)

    @unittest.skipUnless(ON_GPU, "a graph is the GPU's")
    def test_graph(self):
        """A step is its kernels' work, and most of that the solver's."""
        out = self.run_program("--points", 200000, "--levels", 1)
        self.assertGreaterEqual(number(r"inside kernels +(\S+) %", out), 90)
        self.assertGreaterEqual(number(r"batch_gels .* us +(\S+) %", out), 70)
        self.assertEqual(number(r"allocated after the first step +(\S+) B", out), 0)

    def test_quiet(self):
        self.assertEqual(len(self.run_program("--points", 1000, "--levels", 1, "--quiet").splitlines()), 1)


class Picture(unittest.TestCase):
    def test_svg(self):
        with tempfile.TemporaryDirectory() as folder:
            svg = os.path.join(folder, "errors.svg")
            status, out, err = reconstruct("--points", 8000, "--levels", 2, "--svg", svg)
            self.assertEqual((status, err), (0, ""), out)
            space = "{http://www.w3.org/2000/svg}"
            root = ElementTree.parse(svg).getroot()
            texts = [text.text for text in root.iter(space + "text")]
            for text in ("1000", "8000", "gradient", "convection", "order 2"):
                self.assertIn(text, texts)
            self.assertEqual(len(list(root.iter(space + "polyline"))), 2)
            self.assertEqual(len(list(root.iter(space + "circle"))), 4)

    def test_unwritable(self):
        status, _, err = reconstruct("--points", 500, "--levels", 1, "--svg", "/nonexistent/errors.svg")
        self.assertEqual(status, 2)
        self.assertIn("/nonexistent/errors.svg: cannot write", err)

    def test_full_disk(self):
        status, _, err = reconstruct("--points", 500, "--levels", 1, "--svg", "/dev/full")
        self.assertEqual(status, 2)
        self.assertIn("/dev/full: cannot write", err)
        for arguments in (["--help"], ["--points", 500, "--levels", 1, "--svg", "-", "--quiet"]):
            status, err = run_on_full_disk(*arguments)
            self.assertEqual(status, 2)
            self.assertIn("standard output: cannot write", err)


class Input(unittest.TestCase):
    def test_usage(self):
        for arguments in (["--points", "499"], ["--points", "ten"], ["--points", "2e4"], ["--levels", "0"],
                          ["--levels", "7"], ["--fields", "0"], ["--time", "nan"], ["--time", "0"], ["--cfl", "2"],
                          ["--backend", "tpu"], ["--threads", "-1"], ["--bogus"], ["--points"], ["stray"]):
            with self.subTest(arguments):
                status, out, err = reconstruct(*arguments)
                self.assertEqual((status, out), (2, ""))
                self.assertIn("reconstruct: ", err)

    def test_levels_of_too_few_points(self):
        status, _, err = reconstruct("--points", 10000, "--levels", 3)
        self.assertEqual(status, 2)
        self.assertIn("--points 10000 --levels 3: the coarsest cloud would have 156 points, fewer than 500", err)

    def test_help(self):
        status, out, err = reconstruct("--help")
        self.assertEqual((status, err), (0, ""))
        for option in ("points", "levels", "fields", "time", "cfl", "backend", "threads", "svg", "quiet", "help"):
            self.assertIn("--" + option, out)


if __name__ == "__main__":
    main("--points", 500, "--levels", 1)
