# SPDX-License-Identifier: BSD-3-Clause
"""docs/experiments.csv is whole, and docs/experiments.py prints it: test_experiments.py PROGRAM CSV [TEST...]."""
import csv
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM, DATA = map(os.path.abspath, sys.argv[1:3])


def run(*arguments):
    """The exit status, the output and the messages."""
    done = subprocess.run([sys.executable, PROGRAM, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def rows():
    with open(DATA, encoding="utf-8", newline="") as file:
        return list(csv.reader(file, strict=True))


class Experiments(unittest.TestCase):
    def broken(self, change):
        """Runs the program on a copy whose rows were changed, which it must refuse; returns the messages."""
        table = rows()
        change(table)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "experiments.csv")
            with open(path, "w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(table)
            status, _, messages = run("--file", path)
        self.assertEqual(status, 1)
        return messages

    def column(self, name):
        return rows()[0].index(name)

    def test_file_is_whole(self):
        status, out, messages = run("--list", "--file", DATA)
        self.assertEqual((status, messages), (0, ""))
        counts = [int(line.split()[1]) for line in out.splitlines()]
        self.assertEqual(sum(counts), len(rows()) - 1)

    def test_rows_are_different(self):
        table = [tuple(row) for row in rows()]
        self.assertEqual(len(table), len(set(table)))

    def test_everything_is_printed(self):
        _, out, _ = run("--width", "100000")
        columns = [self.column(name) for name in ("idea", "why", "case", "before", "after")]
        for row in rows()[1:]:
            for column in columns:
                self.assertIn(row[column], out)

    def test_filters(self):
        family, kept, case = map(self.column, ("family", "kept", "case"))
        for arguments, right in (
                (["--family", "geqrf_held"], lambda row: "geqrf_held" in row[family]),
                (["--family", "geqrt,larft"], lambda row: "geqrt" in row[family] or "larft" in row[family]),
                (["--kept", "no,untried"], lambda row: row[kept] in ("no", "untried")),
                (["--case", "D 256X256x1000"], lambda row: "d 256x256x1000" in row[case]),
        ):
            status, out, _ = run("--list", *arguments)
            self.assertEqual(status, 0)
            self.assertEqual(sum(int(line.split()[1]) for line in out.splitlines()), sum(map(right, rows()[1:])))
        self.assertIn("[no] One kernel for 2, 4 and 8 warps", run("--text", "ONE KERNEL FOR 2")[1])
        self.assertNotIn(" -> ", run("--brief")[1])
        self.assertEqual(run("--text", "no such experiment")[:2], (1, ""))

    def test_wrong_options(self):
        self.assertEqual(run("--kept", "maybe")[0], 2)
        self.assertIn("--family", run("--help")[1])

    def test_broken_rows_are_refused(self):
        def put(name, text):
            def change(table):
                table[7][self.column(name)] = text
            return change

        for name, text in (("date", "2026-13-01"), ("date", ""), ("commit", "HEAD"), ("family", ""), ("idea", " "),
                           ("kept", "maybe"), ("before", "1.2 ms"), ("after", "fast"), ("unit", ""), ("case", ""),
                           ("why", "")):
            self.assertIn("line", self.broken(put(name, text)), name)
        self.assertIn("fields", self.broken(lambda table: table[7].pop()))
        self.assertIn("fields", self.broken(lambda table: table[7].append("more")))
        self.assertIn("columns", self.broken(lambda table: table[0].pop()))


unittest.main(argv=sys.argv[:1] + sys.argv[3:])
