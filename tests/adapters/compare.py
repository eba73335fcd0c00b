#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""compare.py PROGRAM ADAPTER...: the times of a program's calls alone and behind the adapters, as a table."""
import os
import subprocess
import sys


def times(program, **environment):
    done = subprocess.run([program, "--time"], env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True)
    rows = [line.rsplit(",", 1) for line in done.stdout.splitlines() if line.count(",") == 5]
    return {case: float(ms) for case, ms in rows}


def main():
    program, *adapters = sys.argv[1:]
    before = times(program)
    after = times(program, LD_PRELOAD=":".join(map(os.path.abspath, adapters)))
    print("| call | type | members | alone, ms | behind the adapter, ms | ratio |\n| --- | --- | --- | --- | --- | --- |")
    for case, ms in before.items():
        call, letter, rows, columns, count = case.split(",")
        print(f"| {call} | {letter.lower()} | {count} of {rows} × {columns} | {ms:.3f} | {after[case]:.3f} |"
              f" {ms / after[case]:.2f} |")


if __name__ == "__main__":
    main()
