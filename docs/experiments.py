#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints the experiments of docs/experiments.csv, by family: what was tried, on which cases, and what was found out.

Columns of the file: date and commit at which the experiment was recorded; family (the kernel file, or planner, gemm,
bench, accuracy, range); idea; kept (yes, no, untried, superseded: kept once and replaced since, measured: a profile or
another measurement that changed nothing); routine; case (type and m x n x batch, or in words); before and after, in
the given unit (where it is %, before is 100); why: what was found out.

Filters that are given together must all hold. Exit status: 0, or 1 if nothing is left or the file is broken.
"""
import argparse
import collections
import csv
import datetime
import os
import re
import sys
import textwrap

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "experiments.csv")
COLUMNS = ["date", "commit", "family", "idea", "kept", "routine", "case", "before", "after", "unit", "why"]
KEPT = ["yes", "no", "untried", "superseded", "measured"]
FILLED = ["family", "idea", "why"]


def is_date(text):
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def is_number(text):
    return re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", text) is not None


def fault(row):
    """What is wrong with a row, or an empty string."""
    if None in row or None in row.values():
        return f"it has not {len(COLUMNS)} fields"
    for column in FILLED:
        if not row[column].strip():
            return f"'{column}' is empty"
    if not is_date(row["date"]):
        return f"'{row['date']}' is no date"
    if not re.fullmatch(r"[0-9a-f]{7,40}", row["commit"]):
        return f"'{row['commit']}' is no commit"
    if row["kept"] not in KEPT:
        return f"'{row['kept']}' is none of {', '.join(KEPT)}"
    for column in "before", "after":
        if row[column] and not is_number(row[column]):
            return f"{column} '{row[column]}' is no number"
    measured = bool(row["before"] or row["after"])
    if measured and not (row["routine"] and row["case"] and row["unit"]):
        return "numbers without a routine, a case or a unit"
    return ""


def read(path):
    """The rows of the file; raises ValueError where it is broken."""
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        if reader.fieldnames != COLUMNS:
            raise ValueError(f"{path}: the columns are not {','.join(COLUMNS)}")
        rows = []
        for row in reader:
            wrong = fault(row)
            if wrong:
                raise ValueError(f"{path}: line {reader.line_num}: {wrong}")
            rows.append(row)
    return rows


def matches(row, options):
    if options.family and not any(family in row["family"] for family in options.family.split(",")):
        return False
    if options.kept and row["kept"] not in options.kept.split(","):
        return False
    if options.case and options.case.lower() not in f"{row['routine']} {row['case']}".lower():
        return False
    return not options.text or options.text.lower() in f"{row['idea']} {row['why']}".lower()


def paragraph(text, indent, width):
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def print_cases(rows):
    names = [f"{row['routine']} {row['case']}" for row in rows]
    broad = max(map(len, names))
    for row, name in zip(rows, names):
        line = f"    {name:<{broad}}  {row['before'] or '-':>9} -> {row['after'] or '-':<9} {row['unit']}"
        if row["unit"] != "%" and row["before"] and row["after"] and float(row["before"]):
            line += f" ({float(row['after']) / float(row['before']):.2f})"
        print(line)


def print_family(family, rows, options):
    ideas = collections.defaultdict(list)
    for row in rows:
        ideas[row["idea"], row["kept"]].append(row)
    print(f"{family}: {len(ideas)} ideas, {len(rows)} rows\n")
    for (idea, kept), group in ideas.items():
        print(paragraph(f"[{kept}] {idea}", "  ", options.width))
        # A case may have a word of its own in front of what all of them have in common.
        for why in dict.fromkeys(row["why"] for row in group):
            shared = sum(row["why"] == why for row in group)
            label = "" if shared == len(group) else f"{group[[r['why'] for r in group].index(why)]['case']}: "
            print(paragraph(label + why, "    ", options.width))
        print(f"    {group[0]['date']} {group[0]['commit']}")
        if not options.brief and any(row["before"] or row["after"] for row in group):
            print_cases(group)
        print()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", metavar="NAME[,NAME]", help="families whose names contain one of these")
    parser.add_argument("--case", metavar="TEXT", help="cases that contain this, such as 'd 256x256' or orgqr")
    parser.add_argument("--kept", metavar="WORD[,WORD]", help="of " + ", ".join(KEPT))
    parser.add_argument("--text", metavar="TEXT", help="ideas or findings that contain this")
    parser.add_argument("--brief", action="store_true", help="without the cases")
    parser.add_argument("--list", action="store_true", help="families and how many rows each has, no more")
    parser.add_argument("--width", type=int, default=110, metavar="N", help="columns of a line (110)")
    parser.add_argument("--file", default=FILE, help="another file with the same columns")
    options = parser.parse_args()
    for word in (options.kept or "yes").split(","):
        if word not in KEPT:
            parser.error(f"--kept takes {', '.join(KEPT)}, not '{word}'")
    return options


def main():
    options = arguments()
    try:
        rows = [row for row in read(options.file) if matches(row, options)]
    except (OSError, ValueError, csv.Error) as error:
        print(f"experiments.py: {error}", file=sys.stderr)
        return 1
    families = collections.defaultdict(list)
    for row in rows:
        families[row["family"]].append(row)
    for family, group in families.items():
        if options.list:
            print(f"{family:<16}{len(group):>6}")
        else:
            print_family(family, group, options)
    return 0 if rows else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        sys.stderr.close()
