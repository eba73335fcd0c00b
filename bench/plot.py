#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws benchmark results as SVG.

Writes into --out (default docs/img):
  square.svg    square members: TFLOP/s and share of the machine's limit against n, for each type
  tiny.svg      tiny members: memory bandwidth against n
  large.svg     one large square matrix: TFLOP/s against n, for each compute mode
  speedup.svg   batchqr against the fastest of the measured peers, over (m, n)
  accuracy.svg  test ratios of every case against the bound
A picture that has no data is left out, and said so; one with labels beyond its edges or across each other is an
error. Vertical axes end at the machine's limit (limits.csv).
"""
import argparse
import csv
import math
import os
import sys

import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

import results
from plot_axes import (COLOURS, DECADES, FAINT, INK, direct_labels, heading, line_style, lines_by, misplaced_labels,
                       n_axis, name_of, panels, share_panel, short, tflops_panel, tick_text, y_ticks)

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"s": "single", "d": "double", "c": "single complex", "z": "double complex"}
MODES = {"auto": "#d55e00", "native": "#0072b2", "emulated": "#009e73", "half": "#cc79a7"}
BOUND = 30


def read_limits(path):
    """(device, type, compute) -> (GB/s, GFLOP/s)"""
    with open(path, newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {(row["device"], row["type"], row["compute"]): (float(row["bandwidth_gbps"]), float(row["gflops"]))
                for row in rows}


class Machine:
    """The limits of one device; where it is not in limits.csv, nothing is said about limits."""

    def __init__(self, device, limits):
        self.device = device
        self.limits = {key[1:]: value for key, value in limits.items() if key[0] == device}

    def bandwidth(self, row):
        return self.limits.get((row["type"], row["compute"]), (None, None))[0]

    def gflops(self, row):
        return self.limits.get((row["type"], row["compute"]), (None, None))[1]

    def share(self, row):
        """The floor (time of the bytes or of the operations, whichever is longer) over the time."""
        if not self.bandwidth(row):
            return None
        return max(row["gbps"] / self.bandwidth(row), row["gflops"] / self.gflops(row))

    def roof(self, row):
        """GFLOP/s at the floor."""
        share = self.share(row)
        return row["gflops"] / share if share else None


def draw_square(rows, machine):
    rows = [row for row in rows if row["routine"] == "geqrf" and row["m"] == row["n"] and row["batch"] == 1000
            and row["compute"] == "auto"]
    types = [letter for letter in TYPES if sum(row["type"] == letter for row in rows) > 1]
    if not types:
        return None
    known = any(machine.share(row) for row in rows)
    figure, grid = panels(len(types), 2 if known else 1)
    for column, letter in enumerate(types):
        chosen = [row for row in rows if row["type"] == letter]
        tflops_panel(grid[0][column], chosen, machine)
        grid[0][column].set_title(TYPES[letter])
        if known:
            share_panel(grid[1][column], chosen, machine)
    grid[0][0].set_ylabel("TFLOP/s")
    if known:
        grid[1][0].set_ylabel("% of the machine's limit")
    heading(figure, "QR of 1000 square matrices, n \u00d7 n",
            f"{machine.device}. Grey: beyond what its memory or its fastest matrix product allows.")
    return figure


def draw_tiny(rows, machine):
    rows = [row for row in rows if row["routine"] == "geqrf" and row["m"] == row["n"] <= 32
            and row["suite"] == "tiny" and row["batch"] > 1000]
    types = [letter for letter in TYPES if sum(row["type"] == letter for row in rows) > 1]
    if not types:
        return None
    figure, grid = panels(len(types))
    for axes, letter in zip(grid[0], types):
        chosen = [row for row in rows if row["type"] == letter]
        top = max([machine.bandwidth(row) for row in chosen if machine.bandwidth(row)]
                  or [1.1 * max(row["gbps"] for row in chosen)]) / 1e3
        axes.set_ylim(0, top)
        lines = lines_by(chosen, "impl")
        for impl, line in lines.items():
            axes.plot([row["n"] for row in line], [row["gbps"] / 1e3 for row in line], **line_style(impl))
        n_axis(axes, {row["n"] for row in chosen})
        y_ticks(axes, range(100))
        direct_labels(axes, [(line[-1]["n"], line[-1]["gbps"] / 1e3, name_of(impl), line_style(impl)["color"])
                             for impl, line in lines.items()], False)
        axes.set_title(TYPES[letter])
    grid[0][0].set_ylabel("TB/s")
    heading(figure, "QR of many tiny matrices, n \u00d7 n",
            f"{machine.device}. The matrix read and written once, over the time; the axis ends at a device copy's rate.")
    return figure


def mode_style(mode):
    return {**line_style("batchqr"), "color": MODES.get(mode, FAINT)}


def where_measured(rows):
    """Says so where no line but auto's has its sizes."""
    auto = max((row["n"] for row in rows if row["compute"] == "auto"), default=0)
    others = min((row["n"] for row in rows if row["compute"] != "auto"), default=0)
    return f"; auto measured to {short(auto)}, all else from {short(others)}" if 0 < auto < others else ""


def draw_large(rows, machine):
    """One panel a type: batchqr in each mode that was measured, and the native peers."""
    rows = [row for row in rows if row["routine"] == "geqrf" and row["batch"] == 1 and row["m"] == row["n"] >= 1024]
    types = [letter for letter in TYPES if sum(row["type"] == letter for row in rows) > 1]
    if not types:
        return None
    figure, grid = panels(len(types), height=3.2)
    for axes, letter in zip(grid[0], types):
        chosen = []
        for row in (row for row in rows if row["type"] == letter):
            ours = row["impl"] == "batchqr"
            chosen.append({**row, "line": row["compute"] if ours else row["impl"]})
        tflops_panel(axes, chosen, Machine("", {}), "line",
                     lambda name: name if name in MODES else name_of(name),
                     lambda name: mode_style(name) if name in MODES else line_style(name))
        tops = [machine.gflops(row) / 1e3 for row in chosen if machine.gflops(row)]
        if tops:
            axes.set_ylim(top=max(tops))
            y_ticks(axes, DECADES, True)
        axes.set_title(TYPES[letter])
    grid[0][0].set_ylabel("TFLOP/s")
    heading(figure, "QR of one large square matrix, n \u00d7 n",
            f"{machine.device}. In lower case: batchqr's compute modes{where_measured(rows)}.")
    return figure


def speedups(rows):
    """(m, n) -> geometric mean over batches of (fastest peer's time / ours)."""
    cases = {}
    for row in rows:
        case = cases.setdefault((row["m"], row["n"], row["batch"]), {})
        if row["impl"] == "batchqr":
            case["ours"] = row["ms_median"]
        else:
            case["peer"] = min(row["ms_median"], case.get("peer", math.inf))
    logs = {}
    for (m, n, _), case in cases.items():
        if len(case) == 2:
            logs.setdefault((m, n), []).append(math.log(case["peer"] / case["ours"]))
    return {size: math.exp(sum(values) / len(values)) for size, values in logs.items()}


def speedup_text(value):
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"


def draw_heat(axes, found, norm, colours):
    heights, widths = sorted({m for m, _ in found}), sorted({n for _, n in found})
    values = [[math.log2(found[m, n]) if (m, n) in found else math.nan for n in widths] for m in heights]
    picture = axes.imshow(values, norm=norm, cmap=colours, aspect="auto", origin="lower")
    for i, m in enumerate(heights):
        for j, n in enumerate(widths):
            if (m, n) in found:
                red, green, blue, _ = colours(norm(math.log2(found[m, n])))
                dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
                axes.text(j, i, speedup_text(found[m, n]), ha="center", va="center", fontsize=7,
                          color="white" if dark else INK)
    axes.set_xticks(range(len(widths)), widths, rotation=90)
    axes.set_yticks(range(len(heights)), heights)
    axes.set_xlabel("n")
    axes.grid(False)
    axes.tick_params(length=0, labelsize=7.5)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return picture


def heat_places(maps):
    """A figure with two panels in a row, every cell of the same size."""
    cell_width, cell_height, left, between, top, bottom = 0.27, 0.185, 0.65, 0.75, 0.72, 0.7
    shapes = [(len({n for _, n in found}) * cell_width, len({m for m, _ in found}) * cell_height) for found in maps]
    rows = [shapes[i:i + 2] for i in range(0, len(shapes), 2)]
    width = max(sum(w for w, _ in row) + left + between * (len(row) - 1) for row in rows) + 0.9
    height = top + sum(max(h for _, h in row) + bottom for row in rows) + 0.3 * (len(rows) - 1)
    figure = plt.figure(figsize=(width, height))
    places, y = [], height - top
    for row in rows:
        x = left
        for w, h in row:
            places.append(figure.add_axes((x / width, (y - h) / height, w / width, h / height)))
            x += w + between
        y -= max(h for _, h in row) + bottom + 0.3
    return figure, places


def draw_speedup(rows, machine):
    # Random cases share no rows and columns with one another: a list for bench/cliffs.py, and no map.
    rows = [row for row in rows if row["routine"] == "geqrf" and row["compute"] == "auto" and row["batch"] > 1
            and row["suite"] != "random"]
    found = {letter: speedups([row for row in rows if row["type"] == letter]) for letter in TYPES}
    types = [letter for letter in TYPES if found[letter]]
    if not types:
        return None
    colours = LinearSegmentedColormap.from_list("speed", ["#7f3b08", "#e08214", "#f7f7f7", "#80b1d3", "#08306b"])
    every = [math.log2(value) for letter in types for value in found[letter].values()]
    least, most = min(math.floor(min(every)), -1), max(math.ceil(max(every)), 1)
    norm = TwoSlopeNorm(0, least, most)
    figure, places = heat_places([found[letter] for letter in types])
    for axes, letter in zip(places, types):
        picture = draw_heat(axes, found[letter], norm, colours)
        axes.set_title(TYPES[letter])
        axes.set_ylabel("m")
    bar_axes = figure.add_axes((1 - 0.62 / figure.get_figwidth(), 0.3, 0.1 / figure.get_figwidth(), 0.4))
    ticks = range(least, most + 1)
    bar = figure.colorbar(picture, cax=bar_axes, ticks=ticks)
    bar.ax.set_yticklabels([f"{2 ** tick}" if tick >= 0 else f"1/{2 ** -tick}" for tick in ticks])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    peers = sorted({name_of(row["impl"]) for row in rows if row["impl"] != "batchqr"})
    over = peers[0] if len(peers) == 1 else f"the {'faster' if len(peers) == 2 else 'fastest'} of {', '.join(peers[:-1])} and {peers[-1]}"
    heading(figure, f"Speed-up of batched QR over {over}",
            f"{machine.device}. m \u00d7 n members; geometric mean over the measured batch sizes.")
    return figure


def draw_accuracy(rows, machine):
    """Every case, and the bound that the tests hold them to."""
    kinds = {"residual": "\u2016A \u2212 QR\u2016 / (max(m,n) \u2016A\u2016 \u03b5)",
             "orthogonality": "\u2016I \u2212 Q\u1d34Q\u2016 / (m \u03b5)"}
    rows = [row for row in rows if row["residual"] and row["routine"] in ("geqrf", "qr")]
    if not rows:
        return None
    figure, grid = panels(2, height=3.2)
    figure.set_figwidth(8)
    for axes, (kind, formula) in zip(grid[0], kinds.items()):
        axes.set_yscale("log")
        values = [row[kind] for row in rows if row[kind]]
        axes.set_ylim(min(10 ** math.floor(math.log10(min(values))), 0.01), 2 * BOUND)
        # Ours last, on top.
        for impl in sorted({row["impl"] for row in rows}, key=lambda impl: impl == "batchqr"):
            chosen = [row for row in rows if row["impl"] == impl and row[kind]]
            ours = impl == "batchqr"
            axes.scatter([max(row["m"], row["n"]) for row in chosen], [row[kind] for row in chosen],
                         s=14 if ours else 9, color=COLOURS.get(impl, FAINT), alpha=0.85 if ours else 0.55,
                         linewidth=0, label=name_of(impl), clip_on=False)
        axes.axhline(BOUND, color=INK, linewidth=1)
        axes.annotate("bound", (1, BOUND), xycoords=("axes fraction", "data"), xytext=(4, 0),
                      textcoords="offset points", va="center", fontsize=8)
        n_axis(axes, {max(row["m"], row["n"]) for row in rows}, "max(m, n)", 8)
        axes.yaxis.set_major_locator(FixedLocator([y for y in DECADES[::2] if axes.get_ylim()[0] <= y < BOUND / 3]))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(tick_text))
        axes.set_title(formula, fontweight="normal", fontsize=9)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="upper right", ncols=len(labels), frameon=False, fontsize=8,
                  handletextpad=0, columnspacing=1, bbox_to_anchor=(0.99, 1.0))
    heading(figure, "Accuracy", f"{machine.device}. Test ratios of LAPACK, every measured case.")
    return figure


PICTURES = {"square": draw_square, "tiny": draw_tiny, "large": draw_large, "speedup": draw_speedup,
            "accuracy": draw_accuracy}


def choose_device(rows, wanted):
    devices = sorted({row["device"] for row in rows})
    chosen = [device for device in devices if not wanted or wanted in device]
    if len(chosen) != 1:
        raise results.BadResults(f"--device {wanted or 'is not given'}: expected one of {', '.join(devices)}")
    return chosen[0]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="CSV files, or directories of them")
    parser.add_argument("--out", default=os.path.join(HERE, "..", "docs", "img"), help="directory (default docs/img)")
    parser.add_argument("--device", help="part of the device's name, where the files hold several")
    parser.add_argument("--limits", default=os.path.join(HERE, "limits.csv"), help="what machines can do")
    parser.add_argument("--only", choices=PICTURES, nargs="+", help="these pictures alone")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    try:
        rows = list(results.timed(results.read(arguments.results)).values())
        if not rows:
            raise results.BadResults("the files hold no times")
        device = choose_device(rows, arguments.device)
        machine = Machine(device, read_limits(arguments.limits))
        os.makedirs(arguments.out, exist_ok=True)
    except (results.BadResults, OSError) as error:
        results.fail("plot.py", error)
    rows = [row for row in rows if row["device"] == device]
    for name in arguments.only or PICTURES:
        figure = PICTURES[name](rows, machine)
        if not figure:
            print(f"{name}.svg: left out, no data for it")
            continue
        wrong = misplaced_labels(figure)
        if wrong:
            results.fail("plot.py", f"{name}.svg: {'; '.join(wrong)}")
        path = os.path.join(arguments.out, f"{name}.svg")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
