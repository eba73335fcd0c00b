#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tuner: times every variant over a grid of sizes, adds that to the measurements in tuning/sm_<arch>.csv, and
writes what to take where as tuning/sm_<arch>.tune.

  tuning/tune.py --quick               measure on this machine's GPU (minutes), then write its table
  tuning/tune.py                       the same on the whole grid
  tuning/tune.py --merge FILE          add what the benchmark wrote with --all-families; needs no GPU
  tuning/tune.py --write sm_90         only write the table, from the measurements
  tuning/tune.py --check 60            measure 60 other sizes, and say what the table loses there

Stop it when you like: the same command goes on where it stopped. README.md beside this file says how choices are made.
"""
import argparse
import csv
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time

from measurements import BadFile, CLASSES, Case
import measurements
from ranges import Cover, geomean

HERE = os.path.dirname(os.path.abspath(__file__))
ROUTINES = ("geqrf", "orgqr", "ormqr", "qr", "geqr_r")

LEVELS = ((8, 32, 128, 512, 2048), (4, 16, 64, 256, 1024, 4096), (12, 24, 48, 96, 192, 384))  # coarse to fine
FULL, QUICK = sorted(sum(LEVELS, ())), sorted(sum(LEVELS[:2], ()))
COMPOSED = ("qr", "geqr_r")  # done in steps where no family does the whole
COUNTS = (1, 10, 100, 1000)  # one for each class, and as many as FILL bytes hold for the last
FILL = 2**27
MOST_BYTES = 2**29
MOST_WORK = 3e10  # operations of a case; of one with a single member, which no smaller one stands for:
MOST_WORK_ALONE = 1e11
BYTES = {"s": 4, "d": 8, "c": 8, "z": 16}


def die(message):
    sys.exit(f"tune.py: {message}")


def percent(ratio):
    return f"{100 * (ratio - 1):.1f} %"


def name(case):
    return f"{case.op} {case.type} {case.m} x {case.n} x {case.count}"


# ---- the grid


def batches(size):
    """One for each class; no last one where FILL bytes are not that many members."""
    return [*COUNTS] + ([FILL // size] if FILL // size >= CLASSES[-1] else [])


def work(case):
    """Operations, about."""
    return case.count * case.m * case.n * min(case.m, case.n) * (2 if case.type in "sd" else 8)


def is_small(case):
    most = MOST_WORK_ALONE if case.count == 1 else MOST_WORK
    return work(case) <= most and case.count * case.m * case.n * BYTES[case.type] <= MOST_BYTES


def rank(case):
    """Coarse grids before finer ones, many members before few, real types before complex ones: a sweep that is
    stopped has seen what is used most. Large members before small ones: what is far behind with them is not run with
    these."""
    level = lambda size: next((i for i, sizes in enumerate(LEVELS) if size in sizes), len(LEVELS))
    return (max(level(case.m), level(case.n)), -min(case.count, 1000), "dszc".index(case.type), -case.m * case.n, case)


def grid(ops, types, ms, ns, counts):
    cases = (Case(op, t, m, n, count) for op in ops for t in types for m in ms for n in ns
             if n <= (m if op in ("orgqr", "ormqr") else 2 * m) for count in counts or batches(m * n * BYTES[t]))
    return sorted(filter(is_small, cases), key=rank)


# ---- measuring: one process of the benchmark, which appends to the CSV


def keep_whole_cases(path):
    """Takes what an interruption left unfinished out of the file."""
    if not os.path.exists(path):
        return {}
    done = measurements.read_bench(path)
    rows = [row for case in done.values() for row in case]
    if rows:
        with open(path + ".new", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        os.replace(path + ".new", path)
    else:
        os.remove(path)
    return done


def ask_bench(args, *words):
    try:
        done = subprocess.run([args.bench, *words], capture_output=True, text=True, check=False)
    except OSError as error:
        die(f"{args.bench}: {error.strerror}; build it, or say where it is with --bench")
    if done.returncode > 1:
        die(done.stderr.strip())
    return done.stdout


def architecture(args):
    out = ask_bench(args, "geqrf", "s", "1", "1", "1", "--backend", args.backend, "--peers", "off", "--check-only")
    print(out.splitlines()[0])
    match = re.search(r"\((sm_\d+),", out)
    return match and match.group(1)


def tunable(args):
    """The routines with more than one variant."""
    count = dict.fromkeys(ROUTINES, 0)
    for line in ask_bench(args, "--list").splitlines():
        words = line.split()
        if len(words) > 3 and words[1] in count and words[2] == args.backend:
            count[words[1]] += len(words) - 3
    return [op for op in ROUTINES if count[op] > 1]


class Progress:
    """One line, rewritten on a terminal, or one each ten seconds elsewhere."""

    def __init__(self, total):
        self.total, self.start, self.shown = total, time.monotonic(), -1e9
        self.terminal = sys.stdout.isatty()

    def show(self, done, case):
        now = time.monotonic()
        if now - self.shown < (0.1 if self.terminal else 10):
            return
        self.shown = now
        left = (now - self.start) / done * (self.total - done) if done else 0
        bar = "█" * (24 * done // self.total)
        text = (f"{done:5d}/{self.total}  {bar:░<24}  {100 * done // self.total:3d} %  "
                f"{int(left) // 60:2d}:{int(left) % 60:02d} left  {name(case)}")
        print(f"\r{text}\033[K" if self.terminal else text, end="" if self.terminal else "\n", flush=True)

    def end(self, done):
        seconds = int(time.monotonic() - self.start)
        print("\r\033[K" * self.terminal + f"{done} of {self.total} cases in {seconds // 60}:{seconds % 60:02d}")


def write_start(args, cases, path):
    """The table that measuring starts with: what there is for other routines, and steps for those that have them."""
    ops = {case.op for case in cases}
    lines = [f"{op} sdcz 0.. 0.. 0.. steps - 1\n" for op in COMPOSED if op in ops]
    if os.path.exists(args.table):
        with open(args.table, encoding="ascii") as file:
            rules = [line.split("#")[0] + "\n" for line in file]
        lines += [line for line in rules if len(line.split()) == 8 and line.split()[0] not in ops]
    with open(path, "w", encoding="ascii") as file:
        file.writelines(["batchqr-tuning 1\n", *lines])


def run_bench(args, cases, path, table=None):
    """Appends the cases to the CSV, the planner choosing by a table (none: see write_start). Whether it came to the
    end: not at ^C, nor when the minutes are over."""
    directory, stem = os.path.split(os.path.splitext(os.path.abspath(path))[0])
    os.makedirs(directory, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, open(os.path.join(scratch, "stderr"), "w+") as errors:
        suite, begin = os.path.join(scratch, stem + ".txt"), os.path.join(scratch, "start.tune")
        write_start(args, cases, begin)
        with open(suite, "w", encoding="ascii") as file:
            file.writelines(f"{c.op} {c.type} {c.m} {c.n} {c.count}\n" for c in cases)
        command = [args.bench, "--suite", suite, "--out", directory, "--append", "--backend", args.backend,
                   "--all-families", "--race", "1.5", "--probe", "--budget", str(args.budget), "--limit", "0.2",
                   "--tuning", table or begin]
        if args.commit:
            command += ["--commit", args.commit]
        progress, deadline, at = Progress(len(cases)), time.monotonic() + 60 * args.minutes, 0
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as bench:
            try:
                for line in bench.stdout:
                    match = re.match(r"\[ *(\d+)/", line)
                    if match:
                        at = int(match.group(1)) - 1
                        progress.show(at, cases[at])
                    if time.monotonic() > deadline:
                        raise KeyboardInterrupt
                bench.wait()
            except KeyboardInterrupt:
                bench.terminate()
                progress.end(at)
                return False
        progress.end(len(cases) if bench.returncode in (0, 1) else at)
        if bench.returncode not in (0, 1):
            errors.seek(0)
            die(f"the benchmark failed at {name(cases[at])}:\n{errors.read().strip()}")
    return True


# ---- what the measurements say


def decided(lines, one):
    """The choice of the first line that fits; None: none does."""
    for line in lines:
        ranges = map(measurements.range_of, line[2:5])
        if one.case.type in line[1] and all(low <= x <= high for (low, high), x in zip(ranges, one.case[2:])):
            return line[5], line[6]
    return None


def losses(found, lines):
    """How many times as long as the best the table's choice takes, and where: worst first. Of what finer measurements
    decide, nothing."""
    out = []
    for one in found:
        choice = decided(lines, one)
        gain = one.gains.get(choice, 0) if choice else 1
        if gain:
            out.append((max(1, *one.gains.values()) / gain, one.case, choice))
    return sorted(out, key=lambda item: (-item[0], item[1]))


def tell(op, lost, what):
    loss = f"{percent(geomean(x[0] for x in lost))} (geometric mean), {percent(lost[0][0])} at worst"
    print(f"{op}: {len(lost)} cases, {what}; loss against the best of each: {loss}")
    for ratio, case, choice in lost[:5]:
        if ratio > 1.0005:
            print(f"  {percent(ratio):>7}  {name(case):30} {' '.join(choice or ('as without a table',))}")


def tell_wrong(measured):
    for case, rows in measured.items():
        for row in measurements.own_rows(case, rows):
            if row["residual"] and measurements.is_wrong(row):
                print(f"    WRONG  {name(case):30} {' '.join(measurements.choice_of(row))}: left out")


# ---- commands


def header(path, rows):
    dates = sorted({row["date"] for row in rows})
    return f"""SPDX-License-Identifier: BSD-3-Clause
Written by tuning/tune.py from {os.path.basename(path)}: {len(rows)} rows, {' to '.join(dates[:1] + dates[1:][-1:])}.
The first line that fits decides. gain: how many times as fast as without a table; the geometric mean over what the
line decides.
op types m n count family variant gain"""


def merge(args, measured):
    """Adds the benchmark's cases to the measurements."""
    devices = sorted({row["device"] for rows in measured.values() for row in rows})
    if len(devices) > 1:
        die(f"the measurements are from more than one machine: {', '.join(devices)}")
    tell_wrong(measured)
    points = [sorted(set(axis) | {case[k] for case in measured}) for k, axis in ((2, args.m), (3, args.n))]
    new = measurements.from_bench(measured, points, devices[0] if devices else "")
    if not any(float(row["gain"]) > 0 for row in new):
        die("there are no measurements with right results")
    measurements.write(args.measurements, measurements.merged(measurements.read(args.measurements), new))


def write_table(args):
    rows, sections = measurements.read(args.measurements), []
    if not rows:
        die(f"{args.measurements} has no measurements")
    for op in ROUTINES:
        found = measurements.measurements([row for row in rows if row["op"] == op])
        if found:
            lines = Cover(found, 1 + args.tolerance / 100).texts(op)
            tell(op, losses(found, lines), f"{len(lines)} lines")
            sections.append(lines)
    width = [max([len(line[k]) for lines in sections for line in lines], default=0) for k in range(8)]
    with open(args.table + ".new", "w", encoding="ascii") as file:
        file.writelines(f"# {line}\n" for line in header(args.measurements, rows).splitlines())
        file.write("batchqr-tuning 1\n")
        for lines in filter(None, sections):
            file.write("\n")
            for line in lines:
                file.write("  ".join(word.ljust(w) for word, w in zip(line, width)).rstrip() + "\n")
    os.replace(args.table + ".new", args.table)
    print(f"wrote {args.table}")


def sample_of(args, cases):
    """Cases of the grid, and in place of every other one a size below it; the same ones each time."""
    chance = random.Random(1)
    sample = chance.sample(cases, min(args.check, len(cases)))
    for i in range(1, len(sample), 2):
        case = sample[i]
        m, n = (chance.randint(max([x for x in axis if x < size], default=0) + 1, size)
                for axis, size in ((args.m, case.m), (args.n, case.n)))
        sample[i] = case._replace(m=max(m, n) if case.op in ("orgqr", "ormqr") else m, n=n)
    return sorted(set(sample))


def check(args, cases):
    """Measures the planner's choice by the table against all others."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "check.csv")
        if not run_bench(args, sample_of(args, cases), path, args.table):
            sys.exit(130)
        measured = measurements.read_bench(path)
    for op in ROUTINES:
        lost = []
        for case, rows in measured.items():
            own = measurements.own_rows(case, rows)
            times = [float(row["ms_median"]) for row in own if row["residual"] and not measurements.is_wrong(row)]
            if case.op == op and times:  # the planner's choice may have lost the race: then it was not checked
                planned = float(rows[-1]["ms_median"])
                lost.append((planned / min(times + [planned]), case, measurements.choice_of(rows[-1])))
        if lost:
            tell(op, sorted(lost, key=lambda item: (-item[0], item[1])), f"by {os.path.basename(args.table)}")
    tell_wrong(measured)


def parse():
    numbers = lambda text: sorted({int(word) for word in text.split(",")})
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--quick", action="store_true", help="a coarse grid: powers of two")
    add("--merge", metavar="FILE", help="measure nothing; add the benchmark's cases in this file")
    add("--write", metavar="ARCH", help="measure nothing; write this architecture's table from its measurements")
    add("--check", type=int, metavar="N", help="measure N cases, and say what the table loses there")
    add("--ops", type=lambda text: text.split(","), help="routines (default: those with more than one variant)")
    add("--types", default="sdcz")
    add("--m", type=numbers, help="another grid: values with commas")
    add("--n", type=numbers)
    add("--batch", type=numbers)
    add("--minutes", type=float, default=math.inf, help="stop after so long; the same command goes on")
    add("--budget", type=float, default=0.3, metavar="MS", help="timing of one variant, at least 7 runs (0.3)")
    add("--tolerance", type=float, default=3, metavar="%", help="what a choice may lose for a shorter table (3)")
    add("--bench", default="build/bench/bench", help="the benchmark program (build/bench/bench)")
    add("--backend", default="cuda", choices=("cuda", "cpu"))
    add("--csv", metavar="FILE", help="where a sweep is kept until it is whole (out/tune/sm_<arch>.csv)")
    add("--table", metavar="FILE", help="what to write or to check (tuning/sm_<arch>.tune); the measurements are "
        "the .csv beside it")
    add("--commit", help="the commit to name (default: what git says)")
    args = parser.parse_args()
    args.m, args.n = args.m or (QUICK if args.quick else FULL), args.n or (QUICK if args.quick else FULL)
    return args


def architecture_of(args):
    if args.write:
        return args.write
    if args.merge:
        match = re.match(r"sm_\d+", os.path.basename(args.merge))
        return match and match.group()
    return architecture(args)


def main():
    args = parse()
    arch = architecture_of(args)
    if not arch and not (args.table and (args.csv or args.merge or args.check)):
        die("the architecture is not known: name the files with --csv and --table")
    args.table = args.table or os.path.join(HERE, arch + ".tune")
    args.measurements = os.path.splitext(args.table)[0] + ".csv"
    if args.merge:
        merge(args, measurements.read_bench(args.merge))
    if args.merge or args.write:
        return write_table(args)
    cases = grid(args.ops or tunable(args), args.types, args.m, args.n, args.batch)
    if args.check:
        return check(args, cases)
    path = args.csv or os.path.join("out", "tune", arch + ".csv")
    done = keep_whole_cases(path)
    todo = [case for case in cases if case not in done]
    print(f"{len(cases)} cases, {len(cases) - len(todo)} of them in {path} already")
    if todo and not run_bench(args, todo, path):
        print(f"stopped; the same command goes on from {path}")
        sys.exit(130)
    merge(args, measurements.read_bench(path))
    return write_table(args)


if __name__ == "__main__":
    try:
        main()
    except BadFile as error:
        die(error)
    except KeyboardInterrupt:
        sys.exit(130)
