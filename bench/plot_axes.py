# SPDX-License-Identifier: BSD-3-Clause
"""What the pictures of plot.py are made of: panels, axes, and names beside lines."""
import itertools
import math

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import Bbox

INK, FAINT, GRID = "#1f2933", "#7b8794", "#e4e7eb"
# Okabe and Ito's colours, which stay apart for colour-blind readers; ours is the strongest.
COLOURS = {"batchqr": "#d55e00", "magma": "#0072b2", "cublas": "#009e73", "cusolver": "#8a6fb0",
           "lapack": "#009e73", "lapack_omp": "#0072b2"}
NAMES = {"cublas": "cuBLAS", "cusolver": "cuSOLVER", "magma": "MAGMA", "lapack": "LAPACK",
         "lapack_omp": "LAPACK + OpenMP"}

plt.rcParams.update({
    "font.family": "sans-serif", "font.size": 9, "text.color": INK, "axes.labelcolor": INK,
    "axes.edgecolor": FAINT, "axes.linewidth": 0.7, "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 10, "axes.titlelocation": "left", "axes.titleweight": "bold",
    "xtick.color": FAINT, "ytick.color": FAINT, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "xtick.major.width": 0.7, "ytick.major.width": 0.7, "axes.grid": True, "axes.grid.axis": "y",
    "grid.color": GRID, "grid.linewidth": 0.7, "axes.axisbelow": True, "lines.solid_capstyle": "round",
    "figure.facecolor": "white", "svg.hashsalt": "batchqr",
})


def name_of(impl):
    return NAMES.get(impl, impl)


def line_style(impl):
    ours = impl == "batchqr"
    return {"color": COLOURS.get(impl, FAINT), "linewidth": 2.2 if ours else 1.4, "marker": "o",
            "markersize": 4 if ours else 2.8, "zorder": 3 if ours else 2, "clip_on": False}


def is_clear(axes, x, y, rise):
    """Whether a name that begins at (x, y), `rise` points above it, is across no line."""
    points = 72 / axes.figure.dpi
    left, base = (value * points for value in axes.transData.transform((x, y)))
    for line in axes.lines:
        xs, ys = zip(*(axes.transData.transform(line.get_xydata()) * points))
        for at in range(round(left), round(left) + 44, 4):
            if xs[0] <= at <= xs[-1] and abs(interpolate(at, xs, ys) - base - rise) < 4.2:
                return False
    return True


def interpolate(at, xs, ys):
    for x, y, next_x, next_y in zip(xs, ys, xs[1:], ys[1:]):
        if x <= at <= next_x:
            return y + (next_y - y) * (at - x) / (next_x - x)
    return ys[-1]


def direct_labels(axes, ends, log):
    """Names beside the ends of lines, (x, y, text, colour), pushed apart where lines end at the same x.

    On a linear axis the name of a line that ends early stands above the end, where it is across no line.
    """
    last = max(x for x, *_ in ends)
    low, high = axes.get_ylim()
    place = (lambda y: math.log(y / low) / math.log(high / low)) if log else (lambda y: (y - low) / (high - low))
    height = axes.get_position().height * axes.figure.get_figheight() * 72
    used = {}
    for x, y, text, colour in sorted(ends, key=lambda end: end[1]):
        at = place(y) * height
        early = x < last and not log
        right, rise, size = 6, 0, 8
        if early:
            rise = next((rise for rise in (5.5, 8, 10, 14, 20, 26, 32) if is_clear(axes, x, y, rise)), 10)
            right, size = 4 if rise < 7 else -3, 7
        used[x] = max(at + rise, used.get(x, -math.inf) + 11)
        axes.annotate(text, (x, y), xytext=(right, used[x] - at), textcoords="offset points", color=colour,
                      fontsize=size, va="center", annotation_clip=False,
                      fontweight="bold" if text == "batchqr" else "normal")


def short(size):
    """512, 1k, 1M"""
    for unit, letter in ((1 << 20, "M"), (1 << 10, "k")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{letter}"
    return f"{size:g}"


def n_axis(axes, sizes, label="n", factor=2):
    """A logarithmic axis with powers of `factor` as ticks, which ends where the lines do."""
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(sizes) / (max(sizes) / min(sizes)) ** 0.05, max(sizes))
    exponents = range(math.ceil(math.log(min(sizes), factor)), math.floor(math.log(max(sizes), factor) + 1e-9) + 1)
    axes.xaxis.set_major_locator(FixedLocator([factor ** e for e in exponents]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: short(round(n))))
    axes.set_xlabel(label)


def tick_text(y, _=None):
    """61, 0.1, and small powers of ten as such"""
    if 0 < y < 0.01:
        return f"$10^{{{math.log10(y):.0f}}}$"
    return f"{y:.3g}"


def y_ticks(axes, ticks, log=False):
    """Ticks, and one at the axis's end, which is the machine's limit, in place of its close neighbours."""
    low, high = axes.get_ylim()
    far = (lambda y: y < high / 1.9) if log else (lambda y: y < high - 0.08 * (high - low))
    axes.yaxis.set_major_locator(FixedLocator([y for y in ticks if y >= low and far(y)] + [high]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(tick_text))


DECADES = [10.0 ** e for e in range(-12, 7)]


def lines_by(rows, field):
    lines = {}
    for row in rows:
        lines.setdefault(row[field], []).append(row)
    return {name: sorted(line, key=lambda row: row["n"]) for name, line in sorted(lines.items())}


def draw_roof(axes, rows, machine):
    """Grey above what the machine can do."""
    points = sorted({(row["n"], machine.roof(row)) for row in rows if machine.roof(row)})
    if points:
        n, roof = zip(*points)
        axes.fill_between(n, [r / 1e3 for r in roof], axes.get_ylim()[1], color="#f0f1f3", zorder=0.5, linewidth=0)
        axes.plot(n, [r / 1e3 for r in roof], color=FAINT, linewidth=1, zorder=1)


def tflops_panel(axes, rows, machine, field="impl", label=None, style=line_style):
    lines = lines_by(rows, field)
    values = [row["gflops"] / 1e3 for row in rows]
    top = max([machine.gflops(row) / 1e3 for row in rows if machine.gflops(row)] or [1.2 * max(values)])
    axes.set_yscale("log")
    axes.set_ylim(10 ** math.floor(math.log10(min(values))), top)
    draw_roof(axes, rows, machine)
    for name, line in lines.items():
        axes.plot([row["n"] for row in line], [row["gflops"] / 1e3 for row in line], **style(name))
    n_axis(axes, {row["n"] for row in rows})
    y_ticks(axes, DECADES, True)
    ends = [(line[-1]["n"], line[-1]["gflops"] / 1e3, (label or name_of)(name), style(name)["color"])
            for name, line in lines.items()]
    direct_labels(axes, ends, True)


def share_panel(axes, rows, machine):
    lines = lines_by(rows, "impl")
    axes.set_ylim(0, 100)
    for impl, line in lines.items():
        axes.plot([row["n"] for row in line], [100 * machine.share(row) for row in line], **line_style(impl))
    n_axis(axes, {row["n"] for row in rows})
    ends = [(line[-1]["n"], 100 * machine.share(line[-1]), name_of(impl), line_style(impl)["color"])
            for impl, line in lines.items()]
    direct_labels(axes, ends, False)


def panels(count, rows=1, height=2.7):
    figure, grid = plt.subplots(rows, count, figsize=(max(2.75 * count + 0.6, 6), height * rows), squeeze=False)
    figure.subplots_adjust(left=0.7 / figure.get_figwidth(), right=1 - 0.75 / figure.get_figwidth(),
                           top=1 - 0.72 / figure.get_figheight(), bottom=0.5 / figure.get_figheight(),
                           wspace=0.62, hspace=0.34)
    return figure, grid


def heading(figure, title, detail):
    x, height = 0.12 / figure.get_figwidth(), figure.get_figheight()
    figure.text(x, 1 - 0.12 / height, title, fontsize=12, fontweight="bold", va="top")
    figure.text(x, 1 - 0.34 / height, detail, fontsize=8.5, color=FAINT, va="top")


def misplaced_labels(figure):
    """What is wrong with the labels: beyond the figure's edges, or one across another."""
    figure.canvas.draw()
    labels = [(text.get_text(), text.get_window_extent()) for text in figure.findobj(Text)
              if text.get_visible() and text.get_text().strip()]
    edges = figure.bbox
    wrong = [f"'{text}' is beyond the edge" for text, box in labels
             if box.x0 < edges.x0 or box.x1 > edges.x1 or box.y0 < edges.y0 or box.y1 > edges.y1]
    for (text, box), (other, another) in itertools.combinations(labels, 2):
        overlap = Bbox.intersection(box, another)
        if overlap and overlap.width > 1 and overlap.height > 3:
            wrong.append(f"'{text}' is across '{other}'")
    return wrong
