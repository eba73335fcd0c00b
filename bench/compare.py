#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares two sets of benchmark results, case by case.

A case got slower when its new median is more than RATIO times the old one and the difference is not noise: even
the fastest new run is slower than the old median. Faster is the same with the roles exchanged. A case that was
run once (reps 1) has no spread, so for it the ratio alone decides.

With --agree it says instead, for each implementation, how far the two sets are apart: whether a second run confirms
the first, or whether peers are as fast as somewhere else. OLD may then be a plain list of times of geqrf, with
columns type, m, n, batch and cublas_ms or the like. Status 1: one is apart by more than that.

Exit status: 0 nothing got slower, 1 something did, 2 the results cannot be read or have no case in common.
"""
import argparse
import math
import sys

import results


def spread(row):
    """Half the range of the runs, in percent of the median."""
    return 50 * (row["ms_max"] - row["ms_min"]) / row["ms_median"]


def verdict(old, new, ratio):
    change = new["ms_median"] / old["ms_median"]
    if change > ratio and new["ms_min"] > old["ms_median"]:
        return "slower"
    if change < 1 / ratio and old["ms_min"] > new["ms_median"]:
        return "faster"
    return "same"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def kernels(row):
    return f"{row['family']} {row['variant']}".strip()


def print_pair(old, new):
    chosen = "" if kernels(old) == kernels(new) else f"  {kernels(old)} -> {kernels(new)}"
    print(f"  {results.case_text(new):38s} {new['impl']:10s} {old['ms_median']:11.4f} +-{spread(old):4.1f}% "
          f"{new['ms_median']:11.4f} +-{spread(new):4.1f}%  {new['ms_median'] / old['ms_median']:6.3f}{chosen}")


def print_pairs(title, pairs, reverse):
    if not pairs:
        return
    print(f"{title}: {len(pairs)}")
    print(f"  {'case':38s} {'by':10s} {'old ms':>11s} {'':7s} {'new ms':>11s} {'':7s}  {'new/old':>6s}")
    for old, new in sorted(pairs, key=lambda p: p[1]["ms_median"] / p[0]["ms_median"], reverse=reverse):
        print_pair(old, new)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="CSV file, or directory of them")
    parser.add_argument("new", help="the same")
    parser.add_argument("--ratio", type=float, default=1.05, help="what counts as a change (default 1.05)")
    parser.add_argument("--impl", default="batchqr", help="whose rows: batchqr, a peer, or all (default batchqr)")
    parser.add_argument("--agree", type=float, metavar="PERCENT", help="how far the geometric mean may be from 1")
    parser.add_argument("--all", action="store_true", help="print unchanged cases too")
    arguments = parser.parse_args()
    if not arguments.ratio > 1:
        parser.error(f"--ratio is {arguments.ratio}, expected more than 1")
    return arguments


def load(paths, impl):
    """The timed rows of each path, by the same key: without the layout where one of them does not tell it."""
    read = [[row for row in results.read([path]) if impl in ("all", row["impl"])] for path in paths]
    plain = any(not row["layout"] for rows in read for row in rows)
    key = tuple(name for name in results.KEY if not (plain and name == "layout"))
    return [results.timed(rows, key) for rows in read]


def say_agreement(pairs, percent):
    """Whether all implementations agree."""
    agree = True
    for impl in sorted({new["impl"] for _, new in pairs}):
        changes = [new["ms_median"] / old["ms_median"] for old, new in pairs if new["impl"] == impl]
        mean, limit = geometric_mean(changes), 1 + percent / 100
        near = sum(1 / limit <= change <= limit for change in changes)
        fits = 1 / limit <= mean <= limit
        agree &= fits
        print(f"{impl}: {len(changes)} cases in both, geometric mean of new/old {mean:.3f}: "
              f"{'within' if fits else 'NOT within'} {percent:g} %; {near} single cases are; from {min(changes):.3f} "
              f"to {max(changes):.3f}")
    return agree


def main():
    arguments = parse_arguments()
    try:
        old, new = load((arguments.old, arguments.new), arguments.impl)
    except results.BadResults as error:
        results.fail("compare.py", error)
    common = [key for key in old if key in new]
    if not common:
        results.fail("compare.py", f"no case of {arguments.impl} is in both {arguments.old} and {arguments.new}")
    devices = {row["device"] for row in (*old.values(), *new.values()) if row["device"]}
    if len(devices) > 1:
        print(f"careful: these are different devices: {', '.join(sorted(devices))}")
    if arguments.agree is not None:
        return 0 if say_agreement([(old[key], new[key]) for key in common], arguments.agree) else 1

    found = {"slower": [], "faster": [], "same": []}
    for key in common:
        found[verdict(old[key], new[key], arguments.ratio)].append((old[key], new[key]))
    print_pairs("slower", found["slower"], True)
    print_pairs("faster", found["faster"], False)
    if arguments.all:
        print_pairs("unchanged", found["same"], True)
    mean = geometric_mean([new[key]["ms_median"] / old[key]["ms_median"] for key in common])
    print(f"{len(common)} cases in both: {len(found['slower'])} slower, {len(found['faster'])} faster, "
          f"{len(found['same'])} unchanged (ratio {arguments.ratio:g}); geometric mean of new/old {mean:.3f}")
    lost, gained = len(old) - len(common), len(new) - len(common)
    if lost or gained:
        print(f"only in {arguments.old}: {lost}; only in {arguments.new}: {gained}")
    return 1 if found["slower"] else 0


if __name__ == "__main__":
    sys.exit(main())
