#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tuner: times every variant over a grid of sizes and writes what to take where as tuning/sm_<arch>.tune.

  tuning/tune.py --quick               measure on this machine's GPU (minutes), then write its table
  tuning/tune.py                       the same on the whole grid
  tuning/tune.py --from-csv FILE       only write the table, from measurements; needs no GPU
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
from collections import namedtuple

from ranges import CLASSES, TYPES, Cell, Cover, class_of, geomean

HERE = os.path.dirname(os.path.abspath(__file__))
ROUTINES = ("geqrf", "orgqr", "ormqr", "qr", "geqr_r")
BOUND = 30  # of the test ratios: beyond it a result is wrong

LEVELS = ((8, 32, 128, 512, 2048), (4, 16, 64, 256, 1024, 4096), (12, 24, 48, 96, 192, 384))  # coarse to fine
FULL, QUICK = sorted(sum(LEVELS, ())), sorted(sum(LEVELS[:2], ()))
COMPOSED = ("qr", "geqr_r")  # done in steps where no family does the whole
UNTABLED = ("geqrf_large",)  # takes one layout only: where it is the best, the choice is left to the heuristic
COUNTS = (1, 10, 100, 1000)  # one for each class, and as many as FILL bytes hold for the last
FILL = 2**27
MOST_BYTES = 2**29
MOST_WORK = 3e10  # operations of a case; of one with a single member, which no smaller one stands for:
MOST_WORK_ALONE = 1e11
BYTES = {"s": 4, "d": 8, "c": 8, "z": 16}

Case = namedtuple("Case", "op type m n batch")


def die(message):
    sys.exit(f"tune.py: {message}")


def percent(ratio):
    return f"{100 * (ratio - 1):.1f} %"


def name(case):
    return f"{case.op} {case.type} {case.m} x {case.n} x {case.batch}"


# ---- the grid


def batches(size):
    """One for each class; no last one where FILL bytes are not that many members."""
    return [*COUNTS] + ([FILL // size] if FILL // size >= CLASSES[-1] else [])


def work(case):
    """Operations, about."""
    return case.batch * case.m * case.n * min(case.m, case.n) * (2 if case.type in "sd" else 8)


def is_small(case):
    most = MOST_WORK_ALONE if case.batch == 1 else MOST_WORK
    return work(case) <= most and case.batch * case.m * case.n * BYTES[case.type] <= MOST_BYTES


def rank(case):
    """Coarse grids before finer ones, many members before few, real types before complex ones: a sweep that is
    stopped has seen what is used most. Large members before small ones: what is far behind with them is not run with
    these."""
    level = lambda size: next((i for i, sizes in enumerate(LEVELS) if size in sizes), len(LEVELS))
    return (max(level(case.m), level(case.n)), -min(case.batch, 1000), "dszc".index(case.type), -case.m * case.n, case)


def grid(ops, types, ms, ns, counts):
    cases = (Case(op, t, m, n, batch) for op in ops for t in types for m in ms for n in ns
             if n <= (m if op in ("orgqr", "ormqr") else 2 * m) for batch in counts or batches(m * n * BYTES[t]))
    return sorted(filter(is_small, cases), key=rank)


def choice_of(row):
    """Of several families, one for each step: `steps`, as in a table."""
    return ("steps", "-") if "+" in row["family"] else (row["family"], row["variant"])


# ---- measuring: one process of the benchmark, which appends to the CSV


def read(path):
    """Measurements by case. Only whole cases: bench ends each with the row of the planner's choice, which then
    stands there twice."""
    found = {}
    try:
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["workspace"] is not None:  # else cut off
                    case = Case(row["routine"], row["type"], int(row["m"]), int(row["n"]), int(row["batch"]))
                    found.setdefault(case, []).append(row)
    except OSError as error:
        die(f"{path}: {error.strerror}")
    except (KeyError, ValueError):
        die(f"{path} is not what the benchmark writes")
    return {case: rows for case, rows in found.items()
            if choice_of(rows[-1]) in map(choice_of, rows[:-1])}


def keep_whole_cases(path):
    """Takes what an interruption left unfinished out of the file."""
    if not os.path.exists(path):
        return {}
    done = read(path)
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
            file.writelines(f"{c.op} {c.type} {c.m} {c.n} {c.batch}\n" for c in cases)
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


def passes(row):
    ratios = [float(row[key]) for key in ("residual", "orthogonality") if row[key]]
    return bool(ratios) and all(ratio < BOUND for ratio in ratios)


def cell_of(case, rows):
    """What one case says of the routine's own families; their names begin with it. None: nothing. The last row is the
    planner's choice."""
    times, supported, wrong, heuristic = {}, set(), set(), float(rows[-1]["ms_median"])
    for row in rows:
        choice = choice_of(row)
        if not choice[0].startswith((case.op + "_", "steps")):
            continue
        supported.add(choice)
        if passes(row):
            times.setdefault(choice, float(row["ms_median"]))
        elif row["residual"]:
            wrong.add(choice)
    times = {choice: ms for choice, ms in times.items() if choice not in wrong}
    if times and min(times, key=times.get)[0] in UNTABLED:
        times = {}
    times = {choice: ms for choice, ms in times.items() if choice[0] not in UNTABLED}
    return Cell(case, times, supported, wrong, heuristic) if supported else None


def cells_of(measured, op):
    """By (type, class, m, n)."""
    cells = {}
    for case, rows in measured.items():
        cell = cell_of(case, rows) if case.op == op else None
        if cell:
            cells[case.type, class_of(case.batch), case.m, case.n] = cell
    return cells


def losses(cells, decisions):
    """(how much slower than the best, cell, choice) of each case with a right result, worst first."""
    found = [(cell.times[decisions[key]] / min(cell.times.values()), cell, decisions[key])
             for key, cell in cells.items() if decisions.get(key) in cell.times]
    return sorted(found, key=lambda item: (-item[0], item[1].case))


def loss_text(found):
    return f"{percent(geomean(x[0] for x in found))} (geometric mean), {percent(max(x[0] for x in found))} at worst"


def tell(op, found, what):
    print(f"{op}: {len(found)} cases, {what}; loss against the best of each: {loss_text(found)}")
    for loss, cell, choice in found[:5]:
        if loss > 1.0005:
            best = min(cell.times, key=cell.times.get)
            print(f"  {percent(loss):>7}  {name(cell.case):30} {' '.join(choice)}; best {' '.join(best)}")


def tell_wrong(cells):
    for cell in cells.values():
        for choice in sorted(cell.wrong):
            print(f"    WRONG  {name(cell.case):30} {' '.join(choice)}: left out")


# ---- commands


def header(measured, found):
    seen = {key: sorted({row[key] for rows in measured.values() for row in rows})
            for key in ("device", "cuda", "commit", "date")}
    if len(seen["device"]) > 1:
        die(f"the measurements are from more than one machine: {', '.join(seen['device'])}")
    days = sorted({date[:10] for date in seen["date"]})
    return f"""SPDX-License-Identifier: BSD-3-Clause
Written by tuning/tune.py. {seen["device"][0]}, CUDA {", ".join(seen["cuda"])}, commit {", ".join(seen["commit"])}, \
{" to ".join(days[:1] + days[1:][-1:])}.
{len(found)} cases. Loss against the best variant of each: {loss_text(found)}.
The first line that fits decides. gain: how many times as fast as without a table; the geometric mean over what the
line decides.
op types m n count family variant gain"""


def write_table(table, measured, tolerance):
    sections, everything = [], []
    for op in ROUTINES:
        cells = cells_of(measured, op)
        if not any(cell.times for cell in cells.values()):
            continue
        cover = Cover(cells, 1 + tolerance / 100)
        found = losses(cells, cover.decisions())
        gain = geomean(cell.heuristic / cell.times[choice] for _, cell, choice in found)
        tell(op, found, f"{len(cover.lines)} lines, {gain:.2f} times as fast as without")
        tell_wrong(cells)
        everything += found
        sections.append([cover.words(op, line) for line in cover.lines])
    if not everything:
        die("there are no measurements with right results")
    width = [max(len(line[k]) for lines in sections for line in lines) for k in range(8)]
    with open(table + ".new", "w", encoding="ascii") as file:
        file.writelines(f"# {line}\n" for line in header(measured, everything).splitlines())
        file.write("batchqr-tuning 1\n")
        for lines in sections:
            file.write("\n")
            for line in lines:
                file.write("  ".join(word.ljust(w) for word, w in zip(line, width)).rstrip() + "\n")
    os.replace(table + ".new", table)
    print(f"wrote {table}")


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
        measured = read(path)
    for op in ROUTINES:
        cells, decisions = cells_of(measured, op), {}
        for key, cell in cells.items():
            planned = measured[cell.case][-1]
            decisions[key] = planned["family"], planned["variant"]
            if decisions[key] not in cell.wrong:  # it may have lost the race: then it was not checked
                cell.times.setdefault(decisions[key], float(planned["ms_median"]))
        found = losses(cells, decisions)
        if found:
            tell(op, found, f"by {os.path.basename(args.table)}")
        tell_wrong(cells)


def parse():
    numbers = lambda text: sorted({int(word) for word in text.split(",")})
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--quick", action="store_true", help="a coarse grid: powers of two")
    add("--from-csv", metavar="FILE", help="measure nothing; write the table from these measurements")
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
    add("--csv", metavar="FILE", help="where measurements are kept (out/tune/sm_<arch>.csv)")
    add("--table", metavar="FILE", help="what to write or to check (tuning/sm_<arch>.tune)")
    add("--commit", help="the commit to name (default: what git says)")
    args = parser.parse_args()
    args.m, args.n = args.m or (QUICK if args.quick else FULL), args.n or (QUICK if args.quick else FULL)
    return args


def main():
    args = parse()
    if args.from_csv:
        match = re.match(r"sm_\d+", os.path.basename(args.from_csv))
    else:
        match = re.match(".*", architecture(args) or "")
    arch = match and match.group()
    if not arch and not (args.table and (args.csv or args.from_csv or args.check)):
        die("the architecture is not known: name the files with --csv and --table")
    args.table = args.table or os.path.join(HERE, arch + ".tune")
    if args.from_csv:
        return write_table(args.table, read(args.from_csv), args.tolerance)
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
    return write_table(args.table, read(path), args.tolerance)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
