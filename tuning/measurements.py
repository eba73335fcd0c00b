# SPDX-License-Identifier: BSD-3-Clause
"""The measurements in sm_<arch>.csv: reading and writing them, and merging new ones.

A row says how many times as fast one variant is in one case as what is taken there without a table (`gain`), and for
which sizes and counts the case stands. 0.00: its results were wrong. README.md beside this file has the columns.
"""
import csv
import os
from collections import namedtuple

CLASSES = (1, 4, 32, 256, 2001)  # a few members; fewer than multiprocessors; thousands; enough to fill the memory
NO_END = 10**9
BOUND = 30  # of the test ratios: beyond it a result is wrong
COLUMNS = ("op", "type", "m", "n", "count", "for_m", "for_n", "for_count", "family", "variant", "ms", "gain", "date",
           "commit", "origin")

Case = namedtuple("Case", "op type m n count")
# box: ranges (first, last) of m, n and count, for which the case stands. gains, ms: by choice (family, variant).
Measurement = namedtuple("Measurement", "case box gains ms date")


class BadFile(Exception):
    """Says what is wrong with which file."""


def text_of(first, last):
    return f"{first}.." if last >= NO_END else f"{first}..{last}" if first < last else f"{first}"


def range_of(text):
    first, dots, last = text.partition("..")
    return int(first), int(last) if last else NO_END if dots else int(first)


def read(path):
    """The rows, as dictionaries; none where there is no file."""
    if not os.path.exists(path):
        return []
    with open(path, newline="", encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows, 2):
        try:
            boxes = [range_of(row[key]) for key in ("for_m", "for_n", "for_count")]
            inside = all(first <= int(row[key]) <= last
                         for key, (first, last) in zip(("m", "n", "count"), boxes))
            if not inside or float(row["gain"]) < 0 or None in row.values() or None in row:
                raise ValueError
        except (KeyError, TypeError, ValueError) as error:
            raise BadFile(f"{path}:{number} is not a measurement") from error
    return rows


def write(path, rows):
    def order(row):
        return (row["op"], row["type"], *(int(row[key]) for key in ("m", "n", "count")),
                *(row[key] for key in ("for_m", "for_n", "for_count", "family", "variant")))

    with open(path + ".new", "w", newline="", encoding="ascii") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=order))
    os.replace(path + ".new", path)


def merged(old, new):
    """Newer rows of a case and a variant replace older ones; all others stay."""
    key = lambda row: tuple(row[name] for name in ("op", "type", "m", "n", "count", "family", "variant"))
    replaced = set(map(key, new))
    return [row for row in old if key(row) not in replaced] + new


def measurements(rows):
    """The rows of one case that stand for the same sizes are one measurement."""
    found = {}
    for row in rows:
        case = Case(row["op"], row["type"], int(row["m"]), int(row["n"]), int(row["count"]))
        box = tuple(range_of(row[name]) for name in ("for_m", "for_n", "for_count"))
        one = found.setdefault((case, box), Measurement(case, box, {}, {}, []))
        choice = row["family"], row["variant"]
        one.gains[choice] = float(row["gain"])
        if row["ms"]:
            one.ms[choice] = float(row["ms"])
        one.date.append(row["date"])
    return [one._replace(date=max(one.date)) for one in found.values()]


# ---- from the benchmark's CSV


def choice_of(row):
    """Of several families, one for each step: `steps`, as in a table."""
    return ("steps", "-") if "+" in row["family"] else (row["family"], row["variant"])


def read_bench(path):
    """The benchmark's rows by case. Only whole cases: it ends each with the row of the planner's choice, which then
    stands there twice."""
    found = {}
    try:
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["workspace"] is not None:  # else cut off
                    case = Case(row["routine"], row["type"], int(row["m"]), int(row["n"]), int(row["batch"]))
                    found.setdefault(case, []).append(row)
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    except (KeyError, ValueError) as error:
        raise BadFile(f"{path} is not what the benchmark writes") from error
    return {case: rows for case, rows in found.items() if choice_of(rows[-1]) in map(choice_of, rows[:-1])}


def is_wrong(row):
    ratios = [float(row[key]) for key in ("residual", "orthogonality") if row[key]]
    return not all(ratio < BOUND for ratio in ratios)


def own_rows(case, rows):
    """Those of the routine's own families, whose names begin with its name."""
    return [row for row in rows if choice_of(row)[0].startswith((case.op + "_", "steps"))]


def class_of(count):
    return sum(count >= start for start in CLASSES) - 1


def counts_of(case, cases):
    """Its class; with other counts of the size measured, also classes without one, if it is the nearest to them."""
    known = sorted({class_of(other.count) for other in cases if other._replace(count=case.count) == case})
    mine = class_of(case.count)
    near = [c for c in range(len(CLASSES)) if min(known, key=lambda k: abs(k - c)) == mine] if known[1:] else [mine]
    ends = CLASSES[1:] + (NO_END + 1,)
    return CLASSES[near[0]], ends[near[-1]] - 1


def from_bench(measured, axes, origin):
    """Rows from the benchmark's: a case stands for all sizes down to the next smaller point of the grid's axes."""
    out = []
    same_size = {}
    for case in measured:
        same_size.setdefault(case._replace(count=0), []).append(case)
    for case, rows in measured.items():
        sizes = [(max([x for x in axis if x < size], default=0) + 1, size) for axis, size in zip(axes, case[2:4])]
        box = [text_of(*ends) for ends in (*sizes, counts_of(case, same_size[case._replace(count=0)]))]
        found = {}
        for row in own_rows(case, rows[:-1]):
            if not row["residual"] and not row["orthogonality"]:
                continue  # lost its race: not checked
            gain = 0 if is_wrong(row) else float(rows[-1]["ms_median"]) / float(row["ms_median"])
            found[choice_of(row)] = dict(zip(COLUMNS, (
                *map(str, case), *box, *choice_of(row), row["ms_median"], f"{gain:.2f}", row["date"][:10],
                row["commit"], origin)))
        out += found.values()
    return out
