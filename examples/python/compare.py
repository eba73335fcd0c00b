# SPDX-License-Identifier: BSD-3-Clause
"""Times and errors of QR and of singular values, batchqr's beside NumPy's: a table, and with matplotlib a picture.

    python3 compare.py [--members 1000] [--plot FILE.png]"""
from __future__ import annotations

import argparse
import time

import numpy as np

import batchqr

SIZES = [4, 8, 16, 32, 64]


def best_of(call, times: int = 3):
    """Seconds, and the result."""
    least, result = float("inf"), None
    for _ in range(times):
        begin = time.perf_counter()
        result = call()
        least = min(least, time.perf_counter() - begin)
    return least, result


def error(product, a) -> float:
    """The largest relative error of a member, in units of rounding."""
    norm = np.linalg.norm
    return float((norm(product - a, axis=(1, 2)) / norm(a, axis=(1, 2))).max() / np.finfo(a.dtype).eps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--plot", help="a picture of the times, with matplotlib")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    jobs = {
        "qr": (batchqr.qr, np.linalg.qr, lambda x: x[0] @ x[1]),
        "svd": (batchqr.svd, lambda a: np.linalg.svd(a, full_matrices=False), lambda x: (x[0] * x[1][:, None]) @ x[2]),
    }
    rows = []
    print(f"{args.members} matrices of n x n; ms, and the largest error in roundings")
    print(f"{'job':5}{'n':>4}{'batchqr':>12}{'NumPy':>12}{'error':>9}{'NumPy':>9}")
    for name, (ours, numpy, product) in jobs.items():
        for n in SIZES:
            a = rng.standard_normal((args.members, n, n))
            t, x = best_of(lambda: ours(a))
            t_numpy, y = best_of(lambda: numpy(a))
            rows.append((name, n, t, t_numpy))
            print(f"{name:5}{n:4}{1e3 * t:12.3f}{1e3 * t_numpy:12.3f}{error(product(x), a):9.1f}{error(product(y), a):9.1f}",
                  flush=True)
    if args.plot:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        figure, axes = plt.subplots(figsize=(6, 4.5))
        for name in jobs:
            of_name = [row for row in rows if row[0] == name]
            axes.loglog(SIZES, [1e3 * row[2] for row in of_name], "o-", label=f"batchqr.{name}")
            axes.loglog(SIZES, [1e3 * row[3] for row in of_name], "s--", label=f"numpy.linalg.{name}")
        axes.set_xlabel("n")
        axes.set_ylabel("ms")
        axes.set_title(f"{args.members} matrices of n x n, float64")
        axes.legend()
        figure.savefig(args.plot, dpi=120)
        print(f"wrote {args.plot}")


if __name__ == "__main__":
    main()
