#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Where a peer is faster than batchqr, and where a smaller problem takes longer than a larger one that contains it.

A peer is faster when batchqr's median is more than RATIO times the peer's and the difference is not noise: even
batchqr's fastest run is slower than the peer's median. One problem contains another of the same routine, mode,
type, layout and input when it has at least as many rows, columns and members; the smaller one takes longer when its
median is more than CLIFF times the larger one's and even its fastest run is slower than the larger one's median.

Exit status: 0 neither, 1 some, 2 the results cannot be read.
"""
import argparse
import math
import sys

import results

SAME = ("routine", "compute", "type", "layout", "input")
SIZES = ("m", "n", "batch")


def slower(row, other, ratio):
    return row["ms_median"] > ratio * other["ms_median"] and row["ms_min"] > other["ms_median"]


def behind(rows, ratio):
    """Pairs (ours, a peer's) of one case, in which the peer is faster; and how many pairs there are."""
    case = SAME + SIZES
    ours = {tuple(row[name] for name in case): row for row in rows if row["impl"] == "batchqr"}
    plain = {key[:3] + key[4:]: row for key, row in ours.items()}
    pairs = [(plain[key], row) for row in rows if row["impl"] != "batchqr"
             for key in [tuple(row[name] for name in case if name != "layout")] if key in plain]
    return [pair for pair in pairs if slower(*pair, ratio)], pairs


def cliffs(rows, ratio):
    """Of each case that takes longer than one that contains it, the pair with the quickest of these."""
    groups = {}
    for row in rows:
        if row["impl"] == "batchqr":
            groups.setdefault(tuple(row[name] for name in SAME), []).append(row)
    found = []
    for group in groups.values():
        for row in group:
            containing = [other for other in group if other is not row and all(other[s] >= row[s] for s in SIZES)]
            quickest = min(containing, key=lambda other: other["ms_median"], default=None)
            if quickest and slower(row, quickest, ratio):
                found.append((row, quickest))
    return found


def say(title, pairs, name):
    print(f"{title}: {len(pairs)}")
    for row, other in sorted(pairs, key=lambda pair: -pair[0]["ms_median"] / pair[1]["ms_median"]):
        print(f"  {results.case_text(row):40s} {row['ms_median']:10.4f} ms  {name(other):40s} {other['ms_median']:10.4f} ms"
              f"  {row['ms_median'] / other['ms_median']:6.2f}  {row['family']} {row['variant']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="CSV files, or directories of them")
    parser.add_argument("--ratio", type=float, default=1.05, help="against peers (default 1.05)")
    parser.add_argument("--cliff", type=float, default=1.3, help="against larger problems (default 1.3)")
    arguments = parser.parse_args()
    try:
        rows = list(results.timed(results.read(arguments.results)).values())
    except results.BadResults as error:
        results.fail("cliffs.py", error)
    slow, pairs = behind(rows, arguments.ratio)
    steps = cliffs(rows, arguments.cliff)
    say("slower than a peer", slow, lambda row: row["impl"])
    say("slower than a larger problem", steps, results.case_text)
    cases = sum(row["impl"] == "batchqr" for row in rows)
    faster = math.exp(sum(math.log(peer["ms_median"] / row["ms_median"]) for row, peer in pairs) / max(1, len(pairs)))
    print(f"{cases} cases: {len(slow)} of {len(pairs)} pairs with a peer slower (geometric mean of the peers' times over "
          f"batchqr's {faster:.3g}), {len(steps)} slower than a larger problem")
    return 1 if slow or steps else 0


if __name__ == "__main__":
    sys.exit(main())
