# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark program on the CPU: its results' schema, its suites, its choices, its errors; and the scripts
that read results.

usage: test_bench.py BENCH BENCH_SOURCE_DIRECTORY
"""
import csv
import glob
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

BENCH, SOURCE = sys.argv[1:3]
HEADER = ("routine,compute,type,m,n,batch,layout,impl,ms_median,ms_min,ms_max,reps,gflops,gbps,residual,"
          "orthogonality,family,variant,device,cuda,commit,date,launches,workspace,input").split(",")
BOUND = 30


def run(*arguments):
    done = subprocess.run([BENCH, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def script(name, *arguments):
    done = subprocess.run([sys.executable, os.path.join(SOURCE, name), *arguments], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def suites():
    return sorted(glob.glob(os.path.join(SOURCE, "suites", "*.txt")))


class Scratch(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.out = self.scratch.name

    def measure(self, *arguments, name="case", status=0):
        """Runs on the CPU and returns the rows."""
        code, out, err = run(*arguments, "--backend", "cpu", "--budget", "0", "--out", self.out)
        self.assertEqual(code, status, out + err)
        return read(os.path.join(self.out, name + ".csv"))

    def ours(self, *arguments, **options):
        return [row for row in self.measure(*arguments, "--peers", "off", **options) if row["impl"] == "batchqr"]


class Results(Scratch):
    def test_schema(self):
        rows = self.measure("geqrf", "sd", "8", "4", "50", "--commit", "abc1234", "--reps", "3")
        self.assertEqual(list(rows[0]), HEADER)
        self.assertEqual([(row["type"], row["impl"]) for row in rows],
                         [(letter, impl) for letter in "sd" for impl in ("batchqr", "lapack", "lapack_omp")])
        for row in rows:
            self.assertEqual([row[name] for name in ("routine", "compute", "m", "n", "batch", "layout", "reps")],
                             ["geqrf", "auto", "8", "4", "50", "strided", "3"])
            self.assertEqual((row["commit"], row["cuda"]), ("abc1234", "none"))
            self.assertLessEqual(float(row["ms_min"]), float(row["ms_median"]))
            self.assertLessEqual(float(row["ms_median"]), float(row["ms_max"]))
            self.assertLess(float(row["residual"]), BOUND)
            self.assertLess(float(row["orthogonality"]), BOUND)
            self.assertRegex(row["date"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            self.assertNotEqual(row["device"], "")
        self.assertEqual((rows[0]["family"], rows[0]["variant"]), ("geqrf_lapack", "omp"))
        self.assertEqual((rows[0]["launches"], int(rows[0]["workspace"]) >= 0), ("1", True))
        self.assertEqual(rows[1]["family"], "")

    def test_rates(self):
        row = self.ours("geqrf", "z", "6", "3", "10")[0]
        seconds = float(row["ms_median"]) * 1e-3
        flops, size = 4 * (2 * 9 * (6 - 1)) * 10, 2 * 6 * 3 * 16 * 10
        self.assertAlmostEqual(float(row["gflops"]) * 1e9 * seconds / flops, 1, places=4)
        self.assertAlmostEqual(float(row["gbps"]) * 1e9 * seconds / size, 1, places=4)

    def test_every_routine_type_and_shape(self):
        for routine in ("geqrf", "qr", "geqr_r", "orgqr", "ormqr", "gels", "r_range"):
            for m, n in ((13, 5), (7, 7), (4, 9)):
                if m < n and routine in ("orgqr", "ormqr"):
                    continue
                for row in self.measure(routine, "sdcz", str(m), str(n), "6", "--check-only"):
                    self.assertLess(float(row["residual"]), BOUND, row)
                    has_q = routine in ("geqrf", "qr", "orgqr")
                    self.assertEqual(row["orthogonality"] != "", has_q, row)
                    if has_q:
                        self.assertLess(float(row["orthogonality"]), BOUND, row)

    def test_values_alone(self):
        for routine in ("syevd_values", "gesvd_values"):
            row = self.ours(routine, "d", "40", "40", "3", "--check-only")[0]
            self.assertEqual(row["routine"], routine)
            self.assertLess(float(row["residual"]), BOUND, row)

    def test_large_members_are_probed(self):
        for routine in ("geqrf", "qr", "geqr_r", "orgqr", "ormqr"):
            row = self.ours(routine, "c", "330", "270", "1", "--check-only")[0]
            self.assertTrue(1e-6 < float(row["residual"]) < BOUND, row)

    def test_input(self):
        """Checks know what the members are."""
        for text in ("uniform", "arithmetic:1000", "geometric:1e+10"):
            for sizes in (("20", "13", "3"), ("330", "270", "2")):
                for row in self.ours("geqrf", "sdcz", *sizes, "--check-only", "--input", text):
                    self.assertEqual(row["input"], text)
                    self.assertLess(float(row["residual"]), BOUND, row)
        self.ours("qr", "z", "12", "20", "2", "--check-only", "--input", "geometric:1e4")
        self.ours("ormqr", "d", "300", "200", "2", "--check-only", "--input", "arithmetic:1e4")
        self.ours("geqrf", "d", "330", "270", "1", "--check-only", "--input", "geometric:10", "--spoil", "r", status=1)

    def test_wrong_results_are_seen(self):
        """Exact checks and probes of members of one block and several, by one thread and more."""
        for routine, results in (("geqrf", "r v tau"), ("qr", "r q"), ("geqr_r", "r"), ("orgqr", "q"), ("ormqr", "c"),
                                 ("gels", "c")):
            for sizes in (("20", "10", "3"), ("330", "270", "2")) + (("2100", "1100", "1"),) * (routine == "geqrf"):
                letters = "sdcz" if len(sizes[0]) < 4 else "d"
                for result in results.split():
                    for row in self.ours(routine, letters, *sizes, "--check-only", "--probe", "--spoil", result, status=1):
                        self.assertFalse(float(row["residual"]) < BOUND, row)
                        if result in ("v", "tau", "q"):
                            self.assertFalse(float(row["orthogonality"]) < BOUND, row)

    def test_probes_agree_with_exact_checks(self):
        for routine in ("geqrf", "qr", "geqr_r", "orgqr", "ormqr"):
            for letter in "sdcz":
                exact, probed = ([float(row[key] or 1) for key in ("residual", "orthogonality")]
                                 for probe in ((), ("--probe",))
                                 for row in self.ours(routine, letter, "60", "50", "1", "--check-only", *probe))
                for a, b in zip(exact, probed):
                    self.assertTrue(a / 30 < b < 30 * a, (routine, letter, exact, probed))

    def test_check_only_has_no_times(self):
        row = self.ours("geqrf", "d", "5", "5", "3", "--check-only")[0]
        self.assertEqual((row["ms_median"], row["reps"], row["gflops"]), ("", "0", ""))

    def test_no_check_has_no_ratios(self):
        row = self.ours("geqrf", "d", "5", "5", "3", "--no-check")[0]
        self.assertEqual((row["residual"], row["orthogonality"]), ("", ""))

    def test_layouts_and_tiers(self):
        for arguments in (("--layout", "pointers"), ("--one-call",), ("--one-call", "--layout", "pointers"), ("--cold",),
                          ("--positive",)):
            for routine in ("qr", "ormqr", "geqr_r"):
                row = self.ours(routine, "d", "9", "5", "11", "--reps", "2", *arguments)[0]
                self.assertLess(float(row["residual"]), BOUND)
                self.assertEqual(row["layout"], "pointers" if "pointers" in arguments else "strided")

    def test_sizes_in_host_arrays(self):
        for routine in ("qr", "ormqr", "orgqr", "geqr_r"):
            row = self.ours(routine, "d", "9", "5", "11", "--reps", "2", "--one-call", "--sizes", "host")[0]
            self.assertLess(float(row["residual"]), BOUND)
            self.assertEqual(row["layout"], "strided+sizes")

    def test_time_on_the_host_has_no_rates(self):
        row = self.ours("geqrf", "d", "9", "5", "11", "--reps", "2", "--one-call", "--host")[0]
        self.assertGreater(float(row["ms_median"]), 0)
        self.assertEqual((row["gflops"], row["gbps"]), ("", ""))

    def test_slow_cases_run_once(self):
        row = self.ours("geqrf", "d", "64", "64", "20", "--limit", "0")[0]
        self.assertEqual(row["reps"], "1")

    def test_append(self):
        self.ours("geqrf", "d", "3", "3", "1", "--reps", "1")
        rows = self.ours("geqrf", "s", "3", "3", "1", "--reps", "1", "--append")
        self.assertEqual([row["type"] for row in rows], ["d", "s"])

    def test_missing_rows(self):
        words = ("geqrf", "sd", "3", "3", "5", "--reps", "1", "--append", "--missing", "--commit")
        self.assertEqual(len(self.measure(*words, "abc", "--peers", "off")), 2)
        self.assertEqual([row["impl"] for row in self.measure(*words, "abc", "--peers", "lapack")],
                         ["batchqr", "batchqr", "lapack", "lapack"])
        self.assertEqual(len(self.measure(*words, "abc", "--peers", "lapack")), 4)
        self.assertEqual(len(self.measure(*words, "abc", "--peers", "lapack", "--layout", "pointers")), 6)
        self.assertEqual(len(self.measure(*words, "def", "--peers", "lapack")), 10)
        self.assertEqual(len(self.measure(*words, "abc", "--peers", "lapack", "--input", "uniform")), 14)

    def test_minutes(self):
        code, out, err = run("geqrf", "sdcz", "100", "100", "400", "--backend", "cpu", "--minutes", "0.001")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"stopped by --minutes: [123] cases left")

    def test_slow_runs_are_few(self):
        case = ("geqrf", "d", "64", "64", "2000")
        once = float(self.ours(*case, "--reps", "1")[0]["ms_median"]) / 1000
        row = self.ours(*case, "--limit", str(2.5 * once))[0]
        self.assertLess(int(row["reps"]), 7)

    def test_slow_peers_are_given_up(self):
        code, out, err = run("geqrf", "d", "24", "24", "20000", "--backend", "cpu", "--peers", "lapack", "--reps", "1",
                             "--peer-limit", "0.01")
        self.assertEqual(code, 0, err)
        self.assertIn("lapack     skipped: takes more than 0.01 s (--peer-limit)", out)

    def test_peers_by_name(self):
        rows = self.measure("geqrf", "d", "3", "3", "1", "--reps", "1", "--peers", "lapack_omp")
        self.assertEqual([row["impl"] for row in rows], ["batchqr", "lapack_omp"])


class Choices(Scratch):
    def test_forced_family(self):
        row = self.ours("geqrf", "d", "3", "3", "2", "--reps", "1", "--family", "geqrf_lapack", "--variant", "omp")[0]
        self.assertEqual((row["family"], row["variant"]), ("geqrf_lapack", "omp"))

    def test_family_that_takes_no_part(self):
        code, out, _ = run("geqrf", "d", "3", "3", "2", "--backend", "cpu", "--family", "orgqr_lapack")
        self.assertEqual(code, 1)
        self.assertIn("orgqr_lapack takes no part in geqrf", out)

    def test_all_families(self):
        rows = self.measure("qr", "d", "6", "3", "2", "--reps", "1", "--all-families")
        self.assertGreater(len(rows), 1)
        self.assertEqual({row["impl"] for row in rows}, {"batchqr"})
        for row in rows:
            self.assertIn("geqrf_lapack", row["family"])

    def test_list(self):
        code, out, _ = run("--list")
        self.assertEqual(code, 0)
        for word in ("tiny", "cpu", "geqrf_lapack", "lapack_omp"):
            self.assertIn(word, out)


class Cases(Scratch):
    def cases(self, *arguments):
        code, out, err = run("--dry-run", *arguments)
        self.assertEqual(code, 0, err)
        return [line.split() for line in out.splitlines() if line.startswith("  ")]

    def test_suites_parse(self):
        self.assertGreaterEqual(len(suites()), 9)
        for path in suites():
            with open(path) as file:
                lines = [line.split("#")[0].split() for line in file]
            expected = [[*line[:2], letter, *line[3:]] for line in lines if line for letter in line[2]]
            self.assertEqual(self.cases("--suite", path), expected)
            self.assertEqual(self.cases("--suite", os.path.basename(path)[:-4]), expected)
            self.assertEqual(len({tuple(case) for case in expected}), len(expected), path)

    def test_suites_write_a_file_each(self):
        for name in ("one", "two"):
            with open(os.path.join(self.out, name + ".txt"), "w") as file:
                file.write("# a comment\n\ngeqrf auto d 3 2 4 # another\n")
        paths = ",".join(os.path.join(self.out, name + ".txt") for name in ("one", "two"))
        self.measure("--suite", paths, "--reps", "1", name="one")
        self.assertEqual(len(read(os.path.join(self.out, "two.csv"))), 3)

    def test_sweeps(self):
        sizes = lambda sweep: [(int(c[3]), int(c[4])) for c in self.cases("--sweep", sweep)]
        self.assertEqual(sizes("geqrf d 1..4 square 1000"), [(i, i) for i in range(1, 5)])
        self.assertEqual(sizes("geqrf d 8..20:6 2,3 10"), [(m, n) for m in (8, 14, 20) for n in (2, 3)])
        self.assertEqual(sizes("geqrf d 4..40*3 square 10"), [(4, 4), (12, 12), (36, 36)])
        self.assertEqual(sizes("orgqr d 4,8 6 10"), [(8, 6)])
        self.assertEqual(self.cases("--sweep", "geqrf half sd 64 64 fill"),
                         [["geqrf", "half", "s", "64", "64", "32768"], ["geqrf", "half", "d", "64", "64", "16384"]])

    def test_random(self):
        """The same for a seed; any routine, type and shape within the limits; the second of a pair is larger."""
        drawn = self.cases("--random", "3", "--cases", "400")
        self.assertEqual(drawn, self.cases("--random", "3", "--cases", "400"))
        self.assertNotEqual(drawn[:100], self.cases("--random", "4"))
        self.assertEqual(len(drawn), 400)
        for routine in ("geqrf", "qr", "geqr_r", "orgqr", "ormqr", "gels"):
            self.assertEqual({case[2] for case in drawn if case[0] == routine}, set("sdcz"))
        sizes = [tuple(int(word) for word in case[3:]) for case in drawn]
        self.assertTrue(any(m < n for m, n, _ in sizes))
        for case, (m, n, batch) in zip(drawn, sizes):
            self.assertLess(m * n * batch * {"s": 4, "d": 8, "c": 8, "z": 16}[case[2]], 8e9)
            self.assertTrue(m >= n or case[0] not in ("orgqr", "ormqr"))
        for i in range(0, 400, 2):
            self.assertEqual(drawn[i][:3], drawn[i + 1][:3])
            self.assertTrue(all(a <= b for a, b in zip(sizes[i], sizes[i + 1])))


class Errors(Scratch):
    def wrong(self, *arguments):
        code, _, err = run(*arguments)
        self.assertEqual(code, 2, err)
        return err

    def test_wrong_arguments_are_named(self):
        for arguments, parts in (
                (("--nonsense",), ("--nonsense",)),
                (("--suite",), ("--suite needs a value",)),
                (("--suite", "nowhere"), ("--suite is 'nowhere'", "--list")),
                (("--reps", "0", "geqrf", "d", "3", "3", "1"), ("--reps is '0'", "1 to 101")),
                (("--reps", "2.5"), ("--reps is '2.5'", "whole")),
                (("--limit", "soon"), ("--limit is 'soon'",)),
                (("--backend", "tpu"), ("--backend is 'tpu'", "auto or cpu or cuda")),
                (("--layout", "packed"), ("--layout is 'packed'", "strided or pointers")),
                (("--variant", "omp"), ("--variant needs --family",)),
                (("--family", "no_such"), ("--family is 'no_such'",)),
                (("--family", "geqrf_lapack", "--variant", "x"), ("--variant is 'x'", "geqrf_lapack")),
                (("--peers", "lapack,eispack"), ("'eispack'",)),
                (("--append",), ("--append needs --out",)),
                (("--cases", "3"), ("--cases needs --random",)),
                (("--random", "0"), ("--random is '0'",)),
                (("--missing", "--out", "x"), ("--missing needs --append",)),
                (("--peer-limit", "0"), ("--peer-limit is '0'",)),
                (("--spoil", "x"), ("--spoil is 'x'", "tau")),
                (("--check-only", "--no-check"), ("exclude each other",)),
                (("--sizes", "many"), ("--sizes is 'many'", "uniform or host")),
                (("--input", "normal:3"), ("--input is 'normal:3'", "geometric:C")),
                (("--input", "geometric:0.5"), ("--input is 'geometric:0.5'",)),
                (("--input", "arithmetic"), ("--input is 'arithmetic'",)),
                (("--graph", "--host"), ("exclude each other",)),
                (("--check-only",), ("nothing to measure",)),
                (("potrf", "d", "3", "3", "1"), ("routine is 'potrf'", "geqrf")),
                (("geqrf", "x", "3", "3", "1"), ("type is 'x'",)),
                (("geqrf", "d", "0", "3", "1"), ("m is '0'",)),
                (("geqrf", "d", "3", "-3", "1"), ("option is '-3'",)),
                (("geqrf", "d", "3", "3", "many"), ("batch is 'many'",)),
                (("geqrf", "d", "3", "99999999999", "1"), ("n is '99999999999'", "from 1 to 2147483647")),
                (("--suite", "/"), ("cannot read /: Is a directory",)),
                (("geqrf", "fast", "d", "3", "3", "1"), ("compute is 'fast'", "emulated")),
                (("geqrf", "d", "3"), ("case is 'geqrf d 3'",)),
                (("orgqr", "d", "3", "4", "1"), ("m is 3 and n is 4",)),
                (("--sweep", "geqrf d 5..3 square 1"), ("m is '5..3'",)),
                (("--sweep", "geqrf d 1..4:0 square 1"), ("m is '1..4:0'",)),
                (("--sweep", "geqrf d 1..100000 square 1"), ("at most 4096",)),
                (("--graph", "--backend", "cpu", "geqrf", "d", "3", "3", "1"), ("--graph needs the CUDA backend",))):
            message = self.wrong(*arguments)
            for part in parts:
                self.assertIn(part, message, arguments)

    def test_bad_suite_names_the_line(self):
        path = os.path.join(self.out, "bad.txt")
        with open(path, "w") as file:
            file.write("# fine\ngeqrf auto d 3 3 1\ngeqrf auto d 3 three 1\n")
        message = self.wrong("--suite", path)
        self.assertIn("bad.txt:3: n is 'three'", message)

    def test_gpu_suite_without_gpu(self):
        code, _, err = run("--backend", "cuda", "geqrf", "d", "3", "3", "1", "--check-only")
        if code == 0:
            self.skipTest("there is a GPU")
        self.assertEqual(code, 2)
        self.assertIn("--backend is cuda, but", err)
        message = self.wrong("--suite", "tiny")
        self.assertIn("'tiny' is sized for a GPU", message)
        self.assertIn("--suite cpu", message)
        self.assertIn("'random' is sized for a GPU", self.wrong("--random", "1"))

    def test_unwritable_directory(self):
        code, _, err = run("geqrf", "d", "3", "3", "1", "--backend", "cpu", "--out", "/proc/nowhere")
        self.assertEqual(code, 3)
        self.assertIn("/proc/nowhere/case.csv", err)

    def test_full_disk(self):
        path = os.path.join(self.out, "case.csv")
        os.symlink("/dev/full", path)
        code, out, err = run("geqrf", "d", "3", "3", "1", "--backend", "cpu", "--check-only", "--out", self.out)
        self.assertEqual(code, 3)
        self.assertIn(f"cannot write {path}: No space left on device", err)
        self.assertNotIn("lapack_omp", out, "it goes on after the first row that cannot be written")
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([BENCH, "geqrf", "d", "3", "3", "1", "--backend", "cpu", "--check-only"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn("cannot write to standard output", done.stderr)


def made_up(path, times, reps=7, device="a device"):
    """Results of cases n = 8, 16, ...: (median, min, max)."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for i, (median, least, most) in enumerate(times):
            n = 8 << i
            writer.writerow(["geqrf", "auto", "d", n, n, 1000, "strided", "batchqr", median, least, most, reps, 10, 20,
                             0.5, 0.7, "geqrf_warp", "x", device, "13.0", "abc", "2025-01-01T00:00:00Z", 1, 0])


class Scripts(Scratch):
    def compare(self, old, new, *arguments):
        paths = [os.path.join(self.out, name) for name in ("old.csv", "new.csv")]
        made_up(paths[0], old)
        made_up(paths[1], new)
        return script("compare.py", *paths, *arguments)

    def test_compare_same(self):
        code, out, err = self.compare([(1, 0.9, 1.1)], [(1.02, 0.95, 1.1)])
        self.assertEqual(code, 0, err)
        self.assertIn("0 slower, 0 faster, 1 unchanged", out)

    def test_compare_slower(self):
        code, out, _ = self.compare([(1, 0.99, 1.1), (1, 0.99, 1.1)], [(1.2, 1.15, 1.3), (0.5, 0.4, 0.6)])
        self.assertEqual(code, 1)
        self.assertIn("1 slower, 1 faster", out)
        self.assertIn("geqrf d 8 x 8 x 1000", out)

    def test_compare_ratio(self):
        self.assertEqual(self.compare([(1, 0.99, 1.1)], [(1.2, 1.15, 1.3)], "--ratio", "1.25")[0], 0)

    def test_compare_noise_is_not_slower(self):
        self.assertEqual(self.compare([(1, 0.9, 1.4)], [(1.2, 0.95, 1.3)])[0], 0)

    def test_compare_agreement(self):
        times = [(1, 1, 1), (2, 2, 2)]
        code, out, _ = self.compare(times, [(1.04, 1, 1.1), (2, 2, 2)], "--agree", "3")
        self.assertEqual(code, 0, out)
        self.assertIn("batchqr: 2 cases in both, geometric mean of new/old 1.020: within 3 %; 1 single cases are", out)
        for apart in (1.1, 0.9):
            code, out, _ = self.compare(times, [(apart, apart, apart), (2, 2, 2)], "--agree", "3")
            self.assertEqual(code, 1, out)
            self.assertIn("NOT within 3 %", out)

    def test_compare_with_a_plain_list(self):
        plain, new = (os.path.join(self.out, name) for name in ("plain.csv", "new.csv"))
        with open(plain, "w") as file:
            file.write("type,m,n,batch,cublas_ms,batchqr_ms\nd,8,8,1000,,1.5\nd,16,16,1000,3,2\nd,9,9,1,4,\n")
        made_up(new, [(1.5, 1, 2), (2.1, 2, 3)])
        code, out, err = script("compare.py", plain, new, "--agree", "5", "--impl", "all")
        self.assertEqual(code, 0, out + err)
        self.assertIn("batchqr: 2 cases in both, geometric mean of new/old 1.025: within 5 %", out)

    def test_cliffs(self):
        path = os.path.join(self.out, "cliffs.csv")
        made_up(path, [(1, 0.9, 1.1), (2, 1.9, 2.1)])
        self.assertEqual(script("cliffs.py", path)[0], 0)
        made_up(path, [(3, 2.9, 3.1), (2, 1.9, 2.1)])
        code, out, err = script("cliffs.py", path)
        self.assertEqual(code, 1, err)
        self.assertRegex(out, "slower than a larger problem: 1\n  geqrf d 8 x 8 x 1000 .* geqrf d 16 x 16 x 1000 .* 1.50")
        made_up(path, [(3, 1.9, 3.1), (2, 1.9, 2.1)])
        self.assertEqual(script("cliffs.py", path)[0], 0)
        made_up(path, [(1, 0.9, 1.1)])
        with open(path) as file:
            peer = file.readlines()[1].replace("batchqr,1,0.9,1.1", "cublas,0.8,0.7,0.9")
        with open(path, "a") as file:
            file.write(peer.replace("strided", "pointers"))
        code, out, err = script("cliffs.py", path)
        self.assertEqual(code, 1, err)
        self.assertRegex(out, "slower than a peer: 1\n  geqrf d 8 x 8 x 1000 .* cublas .* 1.25")
        self.assertEqual(script("cliffs.py", path, "--ratio", "1.3")[0], 0)

    def test_compare_nothing_in_common(self):
        paths = [os.path.join(self.out, name) for name in ("old.csv", "new.csv")]
        made_up(paths[0], [(1, 1, 1)])
        made_up(paths[1], [])
        code, _, err = script("compare.py", *paths)
        self.assertEqual(code, 2)
        self.assertIn("no case", err)

    def test_compare_bad_files(self):
        code, _, err = script("compare.py", os.path.join(self.out, "none.csv"), self.out)
        self.assertEqual(code, 2)
        self.assertIn("none.csv", err)
        bad = os.path.join(self.out, "bad.csv")
        with open(bad, "w") as file:
            file.write("a,b\n1,2\n")
        code, _, err = script("compare.py", bad, bad)
        self.assertEqual(code, 2)
        self.assertIn("bad.csv:2", err)

    def test_compare_reads_what_bench_writes(self):
        self.measure("geqrf", "d", "3", "3", "2", "--reps", "2")
        code, out, err = script("compare.py", self.out, self.out, "--impl", "all", "--all")
        self.assertEqual(code, 0, err)
        self.assertIn("3 cases in both", out)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
    def test_plot(self):
        made_up(os.path.join(self.out, "square.csv"), [(1, 1, 1), (2, 2, 2), (3, 3, 3)], device="NVIDIA H200")
        pictures = os.path.join(self.out, "img")
        code, out, err = script("plot.py", self.out, "--out", pictures)
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(os.listdir(pictures)), ["accuracy.svg", "square.svg"])
        self.assertIn("tiny.svg: left out", out)
        made_up(os.path.join(self.out, "tall.csv"), [(1, 1, 1)])
        code, _, err = script("plot.py", self.out, "--out", pictures)
        self.assertEqual(code, 2)
        self.assertIn("--device is not given", err)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
    def test_plot_of_the_committed_results(self):
        code, out, err = script("plot.py", os.path.join(SOURCE, "results", "h200"), "--out", self.out)
        self.assertEqual(code, 0, err)
        self.assertEqual(len(os.listdir(self.out)), 5, out)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
    def test_plot_misplaced_labels(self):
        program = ("import plot; figure, grid = plot.panels(1); plot.heading(figure, 'Title', 'detail ' * 30); "
                   "grid[0][0].text(0.5, 0.5, 'below'); grid[0][0].text(0.5, 0.5, 'above'); "
                   "print(*plot.misplaced_labels(figure), sep='\\n')")
        done = subprocess.run([sys.executable, "-c", program], cwd=SOURCE, capture_output=True, text=True, check=True)
        self.assertIn("detail ' is beyond the edge", done.stdout)
        self.assertIn("'below' is across 'above'", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
