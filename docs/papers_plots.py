#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws what bench/papers.py has measured, beside the papers' own figures.

  papers_plots.py [--rows DIRECTORY] [--out DIRECTORY]   reads papers.csv and cgls.csv of bench/results/h200/papers, writes
                                                         into docs/img, or into these directories,
    papers_lowrank.svg  error of A cut off to a rank, against the rank
    papers_cgls.svg     residual of the normal equations after each step of CGLS with R in half precision, by spectra
    papers_spectra.svg  how much faster least squares is than by native QR, by spectra

Wants Matplotlib."""
import argparse
import csv
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "bench"))

import plot
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

TYPES = {"s": "single", "d": "double"}
KINDS = {"positive": ("in (0, 1)", "#009e73"), "uniform": ("in (\u22121, 1)", "#0072b2"), "normal": ("normal", "#8a6fb0"),
         "arithmetic": ("arithmetic", "#e69f00"), "geometric": ("geometric", "#d55e00"), "one small": ("one small", "#56b4e9")}


def rows_of(directory, name):
    with open(os.path.join(directory, name), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def power(text):
    superscripts = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
    return "10" + "".join(superscripts[int(digit)] for digit in str(round(math.log10(float(text)))))


def name_of(row):
    return KINDS[row["kind"]][0] + (f" {power(row['condition'])}" if row["condition"] else "")


def log_axis(axes, low, high, every):
    axes.set_yscale("log")
    axes.set_ylim(10.0 ** low, 10.0 ** high)
    axes.yaxis.set_major_locator(FixedLocator([10.0 ** e for e in range(low, high + 1, every)]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"$10^{{{round(math.log10(y))}}}$" if y < 1 else "1"))


def draw_lowrank(directory):
    """Ranks by batchqr as points, and by the singular values as a line."""
    figure, grid = plot.panels(2, height=2.7)
    for axes, letter in zip(grid[0], TYPES):
        found = {}
        for row in rows_of(directory, "papers.csv"):
            if row["table"] == "lowrank" and row["type"] == letter:
                who, _, rank = row["impl"].split()
                found.setdefault(who, []).append((int(rank), float(row["residual"])))
        axes.set_xlim(0, 512)
        axes.set_ylim(0, 1)
        axes.plot(*zip(*sorted(found["best"])), color=plot.FAINT, linewidth=1.2)
        axes.plot(*zip(*sorted(found["batchqr"])), color="#d55e00", linewidth=0, marker="o", markersize=4, clip_on=False)
        axes.set_xlabel("rank")
        axes.set_title(TYPES[letter])
    grid[0][0].set_ylabel("\u2016A \u2212 USV\u1d40\u2016 / \u2016A\u2016")
    plot.heading(figure, "Low rank by the SVD of a tall matrix",
                 "524 288 \u00d7 1024, arithmetic spectrum. Points: batch_gesvd; line: the least that there can be.")
    return figure


def draw_cgls(directory):
    figure, grid = plot.panels(2, height=3.4)
    for axes, letter, low in zip(grid[0], TYPES, (-8, -18)):
        lines = {}
        for row in rows_of(directory, "cgls.csv"):
            if row["type"] == letter:
                lines.setdefault((row["kind"], row["condition"]), []).append((int(row["step"]), float(row["residual"]), row))
        log_axis(axes, low, 0, 1 if letter == "s" else 2)
        axes.set_xlim(0, 40)
        for (kind, _), line in lines.items():
            steps, residuals, rows = zip(*line)
            dashes = {"1000.0": (4, 1.5), "10000.0": (2, 1.5), "100000.0": (1, 1.5), "1000000.0": (1, 3)}
            axes.plot(steps, residuals, color=KINDS[kind][1], linewidth=1.4, label=name_of(rows[0]),
                      dashes=dashes.get(rows[0]["condition"], (1, 0)) if kind != "arithmetic" else (1, 0))
        axes.set_xlabel("step")
        axes.set_title(TYPES[letter])
    grid[0][0].set_ylabel("\u2016A\u1d40r\u2016 / \u2016A\u1d40b\u2016")
    handles, labels = grid[0][0].get_legend_handles_labels()
    grid[0][1].legend(handles, labels, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=7.5)
    figure.subplots_adjust(right=1 - 1.25 / figure.get_figwidth())
    plot.heading(figure, "CGLS with R of half precision", "32 768 \u00d7 16 384; R by recursive Gram-Schmidt, mode half.")
    return figure


def draw_spectra(directory):
    times = {}
    for row in rows_of(directory, "papers.csv"):
        if row["table"] == "spectra":
            times.setdefault(row["type"], {}).setdefault(name_of(row), {})[row["impl"]] = row
    figure, grid = plot.panels(2, height=3.0)
    for axes, letter in zip(grid[0], TYPES):
        names = list(times[letter])
        for i, name in enumerate(names):
            ours, native = times[letter][name]["batchqr"], times[letter][name]["batchqr native"]
            refined = ours["iterations"] not in ("", "0") and int(ours["iterations"]) > 0
            axes.barh(i, float(native["ms"]) / float(ours["ms"]), height=0.7,
                      color="#d55e00" if refined else plot.FAINT)
        axes.set_yticks(range(len(names)), names if letter == "s" else [""] * len(names), fontsize=7.5)
        axes.invert_yaxis()
        axes.grid(axis="x")
        axes.grid(False, axis="y")
        axes.axvline(1, color=plot.INK, linewidth=0.8)
        axes.set_xlim(0, 5)
        axes.set_title(TYPES[letter])
    figure.subplots_adjust(left=1.15 / figure.get_figwidth(), wspace=0.15, right=1 - 0.2 / figure.get_figwidth())
    plot.heading(figure, "Least squares, times as fast as native QR",
                 "32 768 \u00d7 16 384, by spectra and condition numbers. Grey: QR after refinement in vain.")
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=os.path.join(HERE, "..", "bench", "results", "h200", "papers"))
    parser.add_argument("--out", default=os.path.join(HERE, "img"))
    arguments = parser.parse_args()
    for name, draw in (("papers_lowrank", draw_lowrank), ("papers_cgls", draw_cgls), ("papers_spectra", draw_spectra)):
        figure = draw(arguments.rows)
        wrong = plot.misplaced_labels(figure)
        if wrong:
            sys.exit(f"papers_plots.py: {name}.svg: {'; '.join(wrong)}")
        path = os.path.join(arguments.out, f"{name}.svg")
        figure.savefig(path, metadata={"Date": None})
        print(path)


if __name__ == "__main__":
    main()
