#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws how methods come to their results, computed on the CPU: no GPU and no timing is involved.

  convergence.py [--out DIRECTORY]   writes into docs/img, or into DIRECTORY,
    lowrank.svg     batch_gesvdr of the CPU backend: error of A's approximation against its rank, for several spectra
    refinement.svg  backward error of X against the steps of refinement, by docs/refinement_model.py, a model of what
                    gels_refine does on GPUs

Wants Matplotlib, and the Python package batchqr for lowrank.svg."""
import argparse
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "bench"), HERE]

import plot
import refinement_model as model
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

OVERSAMPLING = 8
STEPS = {0: "#56b4e9", 1: "#0072b2", 2: "#d55e00"}
# Singular values of a 512 x 512 matrix: j counts from 0.
SIZE, RANKS = 512, (1, 2, 4, 8, 16, 32, 64, 128)
SPECTRA = {"geometric": lambda j: 10.0 ** (-j / 16), "harmonic": lambda j: 1 / (j + 1.0), "flat": lambda j: 1 - j / 1024.0}


def log_axis(axes, low, high, every=1):
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    exponents = range(round(np.ceil(np.log10(low) - 1e-9)), round(np.floor(np.log10(high) + 1e-9)) + 1, every)
    axes.yaxis.set_major_locator(FixedLocator([10.0 ** e for e in exponents]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"$10^{{{round(np.log10(y))}}}$" if y != 1 else "1"))


def orthonormal(random, m, n):
    return np.linalg.qr(random.standard_normal((m, n)))[0]


def draw_lowrank():
    """Of each rank ||A - U S V^H||_2 / ||A||_2, beside s[k] / s[0], the least that there can be, and the smallest singular
    value that is returned next to the true one."""
    import batchqr

    random = np.random.default_rng(1)
    figure, grid = plot.panels(len(SPECTRA), 2, height=2.5)
    for column, (title, singular_values) in enumerate(SPECTRA.items()):
        s = singular_values(np.arange(SIZE))
        a = (orthonormal(random, SIZE, SIZE) * s) @ orthonormal(random, SIZE, SIZE).T
        above, below = grid[0][column], grid[1][column]
        least = s[list(RANKS)]
        log_axis(above, 10 ** np.floor(np.log10(least[-1])), 1)
        above.fill_between(RANKS, least, 1e-9, color="#f0f1f3", zorder=0.5, linewidth=0)
        above.plot(RANKS, least, color=plot.FAINT, linewidth=1)
        below.set_ylim(0.5, 1)
        for axes in (above, below):
            plot.n_axis(axes, RANKS, "k")
        for steps, colour in STEPS.items():
            found = [batchqr.svd_lowrank(a, k, steps, seed=1, oversampling=OVERSAMPLING) for k in RANKS]
            style = {"color": colour, "linewidth": 1.6, "marker": "o", "markersize": 2.8, "clip_on": False}
            above.plot(RANKS, [np.linalg.norm(a - (u * sk) @ v.T, 2) / s[0] for u, sk, v in found],
                       label=f"{steps} power steps", **style)
            below.plot(RANKS, [sk[-1] / s[k - 1] for k, (_, sk, _) in zip(RANKS, found)], **style)
        above.set_title(title)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=3, frameon=False, fontsize=8, bbox_to_anchor=(0.99, 1.0))
    grid[0][0].set_ylabel("\u2016A \u2212 USV\u1d34\u2016 / \u2016A\u2016")
    grid[1][0].set_ylabel("k-th singular value / true one")
    plot.heading(figure, "The k largest singular values by a random sketch",
                 f"batch_gesvdr of {SIZE} \u00d7 {SIZE}, oversampling {OVERSAMPLING}, double precision. Grey: less than any "
                 "matrix of rank k.")
    return figure


def draw_refinement():
    """Of a random right-hand side, for which R of FP16 products, and that of single precision, are preconditioners."""
    m, n = 512, 256
    random = np.random.default_rng(1)
    eps = np.finfo(float).eps / 2
    figure, grid = plot.panels(3, height=3.0)
    for axes, exponent in zip(grid[0], (2, 4, 6)):
        a, b = model.spectrum("geometric", 10.0 ** exponent, m, n, random), random.standard_normal(m)
        scale = np.exp2(-np.floor(np.log2(np.linalg.norm(a, axis=0))))
        q, r = np.linalg.qr(a)
        direct = model.backward_error(a, b, np.linalg.solve(r, q.T @ b)) * eps
        log_axis(axes, 1e-18, 1, 3)
        axes.axhline(direct, color=plot.INK, linewidth=1)
        axes.set_xlim(0, 40)
        axes.set_xlabel("step")
        for half, colour in ((True, "#d55e00"), (False, "#0072b2")):
            iterates = []
            _, steps, good, *_ = model.solve(a * scale, b, model.r_of(a * scale, half), iterates)
            errors = [model.backward_error(a, b, y * scale) * eps for y in iterates]
            axes.plot(range(1, len(errors) + 1), errors, color=colour, linewidth=1.6, marker="o", markersize=2.4,
                      label="R from FP16 products" if half else "R in single precision")
            if not good:
                axes.annotate("given up", (len(errors), errors[-1]), xytext=(5, 0), textcoords="offset points",
                              color=colour, fontsize=8, va="center")
            print(f"condition 1e{exponent}, {'half' if half else 'single'}: {steps} steps, accepted: {good}, "
                  f"{errors[-1] / eps:.2f} eps; QR: {direct / eps:.2f} eps")
        axes.set_title("condition 10" + {2: "\u00b2", 4: "\u2074", 6: "\u2076"}[exponent])
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=2, frameon=False, fontsize=8, bbox_to_anchor=(0.99, 1.0))
    grid[0][0].set_ylabel("backward error of X")
    plot.heading(figure, "Steps of refinement",
                 f"A model of gels_refine, NumPy: {m} \u00d7 {n} in double precision, geometric spectra. Black line: QR.")
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(HERE, "img"), help="directory (default docs/img)")
    arguments = parser.parse_args()
    for name, draw in (("lowrank", draw_lowrank), ("refinement", draw_refinement)):
        figure = draw()
        wrong = plot.misplaced_labels(figure)
        if wrong:
            sys.exit(f"convergence.py: {name}.svg: {'; '.join(wrong)}")
        path = os.path.join(arguments.out, f"{name}.svg")
        figure.savefig(path, metadata={"Date": None})
        print(path)


if __name__ == "__main__":
    main()
