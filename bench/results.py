# SPDX-License-Identifier: BSD-3-Clause
"""Reading of result files, for plot.py and compare.py."""
import csv
import os
import sys

KEY = ("routine", "compute", "type", "m", "n", "batch", "layout", "impl", "input")
INTEGERS = ("m", "n", "batch", "reps")
NUMBERS = ("ms_median", "ms_min", "ms_max", "gflops", "gbps", "residual", "orthogonality")


# What a plain list of times leaves out: its columns are type, m, n, batch and IMPL_ms, as in "cublas_ms", for geqrf.
PLAIN = {"routine": "geqrf", "compute": "auto", "layout": "", "reps": "1", "gflops": "", "gbps": "", "residual": "",
         "orthogonality": "", "family": "", "variant": "", "device": ""}


class BadResults(Exception):
    """A file that is not there or not what `bench` writes."""


def from_plain(row):
    """A row for each time in a row of a plain list; any other row as it is."""
    if "routine" in row or not any(str(name).endswith("_ms") for name in row):
        return [row]
    return [{**row, **PLAIN, "impl": name[:-3], "ms_median": ms, "ms_min": ms, "ms_max": ms}
            for name, ms in row.items() if name.endswith("_ms") and ms]


def read_file(path):
    """The rows of one CSV file, numbers as numbers (None where the field is empty), `suite` from its name."""
    try:
        with open(path, newline="") as file:
            lines = csv.DictReader(line for line in file if not line.startswith("#"))
            rows = [row for line in lines for row in from_plain(line)]
    except OSError as error:
        raise BadResults(f"{path}: {error.strerror}") from None
    for line, row in enumerate(rows, 2):
        row["input"] = row.get("input") or "normal"
        try:
            for name in INTEGERS:
                row[name] = int(row[name])
            for name in NUMBERS:
                row[name] = float(row[name]) if row[name] else None
        except (KeyError, TypeError, ValueError) as error:
            raise BadResults(f"{path}:{line}: not a row of bench's results ({error})") from None
        row["suite"] = os.path.splitext(os.path.basename(path))[0]
    return rows


def read(paths):
    """The rows of files, and of all *.csv in directories."""
    rows = []
    for path in paths:
        if os.path.isdir(path):
            names = sorted(name for name in os.listdir(path) if name.endswith(".csv"))
            if not names:
                raise BadResults(f"{path}: no .csv file in this directory")
            for name in names:
                rows += read_file(os.path.join(path, name))
        else:
            rows += read_file(path)
    return rows


def timed(rows, key=KEY):
    """Rows with times, by key; where a case stands several times, the last one."""
    return {tuple(row[name] for name in key): row for row in rows if row["ms_median"]}


def case_text(row):
    """For people: `geqrf d 64 x 64 x 1000`."""
    compute = "" if row["compute"] == "auto" else f" {row['compute']}"
    return f"{row['routine']}{compute} {row['type']} {row['m']} x {row['n']} x {row['batch']}"


def fail(program, error):
    print(f"{program}: {error}", file=sys.stderr)
    sys.exit(2)
