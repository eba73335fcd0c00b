#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_hmatrix.py PROGRAM DATA [TEST...]: runs the example hmatrix as its users do; see example.py."""
import os
import re
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from example import ON_GPU, data, main, number, run as hmatrix, run_on_full_disk


def members(out):
    return number(r"members +(\d+) in", out)


class Compression(unittest.TestCase):
    def compress(self, *arguments, tol=1e-6):
        status, out, err = hmatrix("--tol", tol, "--svg", "-", *arguments)
        self.assertEqual((status, err), (0, ""), out)
        self.assertLessEqual(number(r"Relative error of .*: (\S+), tolerance", out), tol)
        return out

    def test_wing(self):
        out = self.compress("--points", 3000)
        self.assertGreater(members(out), 200)
        before = number(r"low rank, cross approximation +(\S+)", out)
        after = number(r"low rank, recompressed +(\S+)", out)
        self.assertLess(after, 0.9 * before)
        self.assertGreater(number(r"1 : (\S+) after", out), 2)

    def test_tolerances(self):
        sizes = []
        for tol in (1e-2, 1e-4, 1e-8, 1e-11):
            sizes.append(number(r"H-matrix +(\S+)", self.compress("--points", 3000, tol=tol)))
        self.assertEqual(sizes, sorted(sizes))

    def test_chunks(self):
        whole = self.compress("--points", 3000, "--leaf", 20)
        chunks = self.compress("--points", 3000, "--leaf", 20, "--chunk", 1)
        self.assertGreater(number(r"in (\d+) chunks", chunks), 5)
        self.assertEqual(members(whole), members(chunks))
        self.assertEqual(number(r"recompressed +(\S+)", whole), number(r"recompressed +(\S+)", chunks))

    def test_block_larger_than_chunk(self):
        self.compress("--points", 6000, "--leaf", 500, "--eta", 10, "--chunk", 1, tol=1e-10)

    def test_threads(self):
        self.compress("--points", 2000, "--threads", 1)
        self.compress("--points", 2000, "--threads", 3)

    def test_few_points(self):
        for points in (2, 3, 17, 100):
            self.compress("--points", points)

    def test_single_points_as_leaves(self):
        self.compress("--points", 500, "--leaf", 1)

    def test_files(self):
        for name, points in (("sphere.xyz", 600), ("torus.off", 648), ("box.obj", 386)):
            with self.subTest(name):
                path = data(name)
                out = self.compress("--file", path, "--leaf", 32, tol=1e-3)
                self.assertEqual(number(r"points +(\d+):", out), points)
                self.assertGreater(members(out), 20)
                self.assertEqual("100 points that coincide" in out, name == "box.obj")
                self.compress("--file", path, "--leaf", 20, tol=1e-8)

    def test_sum(self):
        for arguments in (["--points", 3000], ["--points", 1500, "--chunk", 1], ["--points", 1000, "--leaf", 200]):
            out = self.compress(*arguments, "--add", 2)
            self.assertIn("twice the tolerance 2e-06: passed", out)
            before, after = map(int, re.search(r"ranks +(\d+), added up; (\d+) after rounding", out).groups())
            self.assertLess(after, 0.8 * before)
        self.assertIn("passed", self.compress("--points", 700, "--leaf", 10, "--eta", 8, "--add", 0.5, tol=1e-11))

    def test_large_cores(self):
        self.compress("--points", 3000, "--eta", 10, "--leaf", 400, tol=1e-12)

    @unittest.skipUnless(ON_GPU, "sets a GPU beside the CPU")
    def test_compare(self):
        out = self.compress("--points", 3000, "--chunk", 4, "--compare")
        gpu, cpu = map(int, re.search(r"ranks kept, added up +(\d+) +(\d+)", out).groups())
        self.assertLessEqual(abs(gpu - cpu), 0.001 * cpu)
        for stage in ("batched QR", "SVD of the cores, truncation", "batched apply of Q", "all of it"):
            self.assertRegex(out, stage + r" +\d+\.\d\d +\d+\.\d\d +\d+\.\d\n")

    def test_quiet(self):
        out = self.compress("--points", 500, "--quiet")
        self.assertEqual(len(out.splitlines()), 1)


class Picture(unittest.TestCase):
    def test_svg(self):
        with tempfile.TemporaryDirectory() as folder:
            points = os.path.join(folder, "a<b>&c.xyz")  # a name that XML would take amiss
            with open(points, "w", encoding="ascii") as file:
                file.writelines(f"{i % 20} {i // 20} 0\n" for i in range(400))
            svg = os.path.join(folder, "blocks.svg")
            status, out, err = hmatrix("--file", points, "--leaf", 8, "--tol", 1e-3, "--svg", svg)
            self.assertEqual((status, err), (0, ""), out)
            root = ElementTree.parse(svg).getroot()
            texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
            self.assertIn("dense", texts)
            self.assertTrue(any("a<b>&c.xyz" in text for text in texts))
            paths = "".join(path.get("d") for path in root.iter("{http://www.w3.org/2000/svg}path"))
            squares = [tuple(map(int, square)) for square in re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)h-\d+z", paths)]
            # With the mirror images, the blocks cover the matrix.
            self.assertEqual(sum(n * m * (1 if x == y else 2) for x, y, n, m in squares), 400 * 400)

    def test_unwritable(self):
        status, _, err = hmatrix("--points", 50, "--svg", "/nonexistent/blocks.svg")
        self.assertEqual(status, 2)
        self.assertIn("/nonexistent/blocks.svg: cannot write", err)

    def test_full_disk(self):
        status, _, err = hmatrix("--points", 50, "--svg", "/dev/full")
        self.assertEqual(status, 2)
        self.assertIn("/dev/full: cannot write", err)
        for arguments in (["--help"], ["--points", 50, "--svg", "-", "--quiet"]):
            status, err = run_on_full_disk(*arguments)
            self.assertEqual(status, 2)
            self.assertIn("standard output: cannot write", err)


class Input(unittest.TestCase):
    def read(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(text.encode() if isinstance(text, str) else text)
            status, _, err = hmatrix("--file", path, "--svg", "-", "--quiet")
            return status, err.replace(folder + os.sep, "").strip()

    def test_accepted(self):
        for name, text in (
            ("plain.xyz", "0 0 0\n1 0 0\n\n# and the last\n0 1 0 0.5 0.5"),
            ("dos.XYZ", "0 0 0\r\n1 0 0\r\n"),
            ("water.xyz", "3\nwater\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n"),
            ("blank-comment.xyz", "2\n\n0 0 0\n1 0 0\n"),
            ("count.xyz", "2\n0 0 0\n1 0 0\n"),
            ("one-line.off", "OFF 2 0 0\n0 0 0\n1 0 0\n"),
            ("normals.off", "# made by hand\nNOFF\n\n2 1\n0 0 0 0 0 1\n1 0 0 0 0 1 # the second\n2 0 1\n"),
            ("weights.obj", "o thing\nvn 0 0 1\nv 0 0 0 1\nvt 0 0\n  v\t1 0 0\nf 1 2 1\n"),
            ("corners.obj", "f 1 2/7 2//3\nv 0 0 0\nv 1 0 0\nf -1/1/1 -2 \\\n1\nfo 9\nf 1 2 # 3\n"),
            ("colours.off", "OFF\n2 2 0\n0 0 0\n1 0 0\n2 0 1 255 0 0\n0\n"),
            ("near-underflow.xyz", "0 0 0\n1e-300 0 0\n0 1e-200 0\n1 0 0\n0.5 0 0\n"),
        ):
            with self.subTest(name):
                self.assertEqual(self.read(name, text), (0, ""))

    def test_rejected(self):
        for name, text, message in (
            ("short.xyz", "0 0 0\n1 2\n", "short.xyz:2: the line ends after 2 of 3 coordinates"),
            ("word.xyz", "0 0 0\n\n1 x2 3\n", "word.xyz:3: coordinate y is not a number: 'x2'"),
            ("comma.xyz", "0,0,0\n", "comma.xyz:1: coordinate x is not a number: '0,0,0'"),
            ("nan.xyz", "0 0 0\n1 2 nan\n", "nan.xyz:2: coordinate z is not finite: 'nan'"),
            ("inf.obj", "v 0 0 0\nv -inf 0 0\n", "inf.obj:2: coordinate x is not finite: '-inf'"),
            ("huge.xyz", "0 0 0\n1e999 0 0\n", "huge.xyz:2: coordinate x is not finite: '1e999'"),
            ("few.xyz", "3\nthree\n0 0 0\n1 0 0\n",
             "few.xyz:4: the file ends after 2 of the 3 points that line 1 announces"),
            ("many.xyz", "2\ntwo\n0 0 0\n1 0 0\n2 0 0\n", "many.xyz:5: more points than the 2 that line 1 announces"),
            ("empty.xyz", "", "empty.xyz:1: the file ends with 0 points; at least 2 are needed"),
            ("one.xyz", "1 2 3\n", "one.xyz:1: the file ends with 1 points; at least 2 are needed"),
            ("same.xyz", "1 2 3\n1 2 3\n", "same.xyz: all points coincide; at least 2 are needed"),
            ("apart.xyz", "-1e308 0 0\n1e308 0 0\n", "apart.xyz: the points span inf"),
            ("binary.xyz", b"0 0 0\n\0\1\2\n", "binary.xyz:2: a zero byte: this is not a text file"),
            ("empty.off", "\n", "empty.off:1: the file is empty"),
            ("magic.off", "ply\n", "magic.off:1: an .off file of points in space starts with OFF, not 'ply'"),
            ("four.off", "4OFF\n1 0 0\n", "four.off:1: an .off file of points in space starts with OFF, not '4OFF'"),
            ("counts.off", "OFF\nmany few\n", "counts.off:2: the numbers of vertices and faces should be here"),
            ("negative.off", "OFF\n-3 0 0\n", "negative.off:2: the numbers of vertices and faces should be here"),
            ("headless.off", "OFF\n", "headless.off:1: the file ends before the numbers of vertices and faces"),
            ("vertices.off", "OFF\n3 0 0\n0 0 0\n1 0 0\n", "vertices.off:4: the file ends after 2 of 3 vertices"),
            ("faces.off", "OFF\n2 2 0\n0 0 0\n1 0 0\n2 0 1\n", "faces.off:5: the file ends after 1 of 2 faces"),
            ("short.off", "OFF\n2 0 0\n0 0 0\n1 0\n", "short.off:4: the line ends after 2 of 3 coordinates"),
            ("corner.off", "OFF\n2 1 0\n0 0 0\n1 0 0\n3 0 1 2\n",
             "corner.off:5: vertex '2' of the face is not in 0 .. 1"),
            ("minus.off", "OFF\n2 1 0\n0 0 0\n1 0 0\n2 0 -1\n",
             "minus.off:5: vertex '-1' of the face is not in 0 .. 1"),
            ("corners.off", "OFF\n2 1 0\n0 0 0\n1 0 0\n3 0 1\n", "corners.off:5: the line ends after 2 of 3 corners"),
            ("face.off", "OFF\n2 1 0\n0 0 0\n1 0 0\nx 0 1\n",
             "face.off:5: the number of the face's corners should be here: 'x 0 1'"),
            ("corner.obj", "v 0 0 0\nf 1 2/1 3//1\nv 1 0 0\n",
             "corner.obj:2: vertex 3 of a face, in a file of 2 vertices"),
            ("zero.obj", "v 0 0 0\nv 1 0 0\nf 1 0 2\n", "zero.obj:3: '0' is not a vertex of the 2 so far"),
            ("minus.obj", "v 0 0 0\nf -1 -2\nv 1 0 0\n", "minus.obj:2: '-2' is not a vertex of the 1 so far"),
            ("word.obj", "v 0 0 0\nv 1 0 0\nf 1 2x\n", "word.obj:3: '2x' is not a vertex of the 2 so far"),
            ("short.obj", "v 0 0 0\nv 1\n", "short.obj:2: the line ends after 1 of 3 coordinates"),
            ("none.obj", "vn 0 0 1\nf 1 2 3\n", "none.obj:2: the file ends with 0 points"),
            ("points.txt", "0 0 0\n", "points.txt: the name should end in .xyz, .off or .obj"),
        ):
            with self.subTest(name):
                status, err = self.read(name, text)
                self.assertEqual(status, 2)
                self.assertTrue(err.startswith("hmatrix: " + message), err)

    def test_missing(self):
        status, _, err = hmatrix("--file", "/nonexistent/points.xyz")
        self.assertEqual(status, 2)
        self.assertIn("/nonexistent/points.xyz: cannot open", err)

    def test_usage(self):
        for arguments in (["--points", "1"], ["--points", "ten"], ["--points", "20x"], ["--tol", "nan"], ["--tol", "2"],
                          ["--eta", "0"], ["--leaf", "0"], ["--backend", "tpu"], ["--threads", "-1"], ["--bogus"],
                          ["--points"], ["stray"], ["--points", "10", "--file", "x.xyz"]):
            with self.subTest(arguments):
                status, out, err = hmatrix(*arguments)
                self.assertEqual((status, out), (2, ""))
                self.assertIn("hmatrix: ", err)

    @unittest.skipIf(ON_GPU, "there is a GPU to compare with")
    def test_nothing_to_compare(self):
        status, _, err = hmatrix("--points", 50, "--compare", "--svg", "-")
        self.assertEqual(status, 2)
        self.assertIn("hmatrix: --compare sets a GPU beside the CPU, and the backend is CPU", err)

    def test_help(self):
        status, out, err = hmatrix("--help")
        self.assertEqual((status, err), (0, ""))
        for option in ("points", "file", "tol", "eta", "leaf", "backend", "compare", "add", "threads", "chunk", "svg", "quiet",
                       "help"):
            self.assertIn("--" + option, out)


if __name__ == "__main__":
    main("--points", 50)
