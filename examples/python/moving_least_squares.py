# SPDX-License-Identifier: BSD-3-Clause
"""Moving least squares: a function known at scattered points, and its gradient, at many other points. Around each of
these a quadratic polynomial is fitted to the nearest 20 points, by weighted least squares: one small problem for each.

    python3 moving_least_squares.py [--points 20000] [--plot FILE.png]"""
from __future__ import annotations

import argparse
import time

import numpy as np

import batchqr

NEIGHBOURS = 20


def f(x):
    return np.sin(5 * x[..., 0]) * np.cos(4 * x[..., 1])


def gradient(x):
    return np.stack([5 * np.cos(5 * x[..., 0]) * np.cos(4 * x[..., 1]),
                     -4 * np.sin(5 * x[..., 0]) * np.sin(4 * x[..., 1])], -1)


def neighbours(points, at):
    """The nearest points of each place, by cells of a grid."""
    cells = max(1, int(np.sqrt(len(points) / 8)))
    cell = np.minimum((points * cells).astype(int), cells - 1)
    order = np.lexsort((cell[:, 1], cell[:, 0]))
    flat = cell[order, 0] * cells + cell[order, 1]
    first = np.searchsorted(flat, np.arange(cells * cells + 1))
    near = np.empty((len(at), NEIGHBOURS), int)
    for i, x in enumerate(at):
        center, reach = np.minimum((x * cells).astype(int), cells - 1), 1
        while True:
            low, high = np.maximum(center - reach, 0), np.minimum(center + reach, cells - 1)
            found = np.concatenate([order[first[c * cells + low[1]]:first[c * cells + high[1] + 1]]
                                    for c in range(low[0], high[0] + 1)])
            if len(found) >= NEIGHBOURS:
                break
            reach += 1
        distance = ((points[found] - x) ** 2).sum(1)
        near[i] = found[np.argpartition(distance, NEIGHBOURS - 1)[:NEIGHBOURS]]
    return near


def systems(points, at, near):
    """Weighted polynomials (len(at), NEIGHBOURS, 6) and values (len(at), NEIGHBOURS, 1)."""
    d = points[near] - at[:, None]
    radius = np.sqrt((d ** 2).sum(-1).max(-1))[:, None, None]
    x, y = np.moveaxis(d / radius, -1, 0)
    weight = np.exp(-4 * (x ** 2 + y ** 2))[..., None]
    a = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], -1)
    return weight * a, weight * f(points[near])[..., None], radius[:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=20000)
    parser.add_argument("--plot", help="a picture of the error, with matplotlib")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    points, at = rng.random((args.points, 2)), 0.05 + 0.9 * rng.random((args.points, 2))
    near = neighbours(points, at)
    a, b, radius = systems(points, at, near)

    begin = time.perf_counter()
    result = batchqr.lstsq(a, b)
    ours = time.perf_counter() - begin
    fit = result.x[..., 0]
    assert (result.info == 0).all()

    some = slice(0, 2000)
    begin = time.perf_counter()
    for i in range(*some.indices(len(a))):
        np.linalg.lstsq(a[i], b[i], rcond=None)
    numpy = (time.perf_counter() - begin) * len(a) / len(a[some])

    error = np.abs(fit[:, 0] - f(at))
    of_gradient = np.abs(fit[:, 1:3] / radius - gradient(at)).max(-1)
    print(f"{len(a)} fits of {a.shape[1]} x {a.shape[2]}: batchqr {ours:.4f} s, a loop of numpy.linalg.lstsq {numpy:.4f} s")
    print(f"largest error of the function {error.max():.2e}, of its gradient {of_gradient.max():.2e}")
    if args.plot:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        figure, axes = plt.subplots(figsize=(6, 5))
        shown = axes.scatter(*at.T, c=np.log10(error + 1e-16), s=3)
        figure.colorbar(shown, label="log10 of the error")
        axes.set_title(f"Moving least squares, {len(a)} points")
        figure.savefig(args.plot, dpi=120)
        print(f"wrote {args.plot}")


if __name__ == "__main__":
    main()
