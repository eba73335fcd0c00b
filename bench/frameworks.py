#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times QR as users of Python call it: batchqr.qr of arrays of PyTorch, CuPy and JAX, stored by rows, and what the
frameworks have themselves, for the cases of suites/explicit.txt.

  frameworks.py --out DIR               writes DIR/frameworks.csv
               [--only NAME] [--ours]   of one framework, of batchqr alone
  frameworks.py --plot FILE.svg CSV C   draws it beside the C call of C, bench's explicit.csv

A time is that of a call among ten in a row, or of one alone where it takes long: from an event before the first to one
behind the last, for JAX of a compiled function until the last result is there. What takes longer than --limit seconds is
left out."""
import argparse
import csv
import datetime
import pathlib
import statistics
import subprocess
import sys
import time

SUITE = pathlib.Path(__file__).parent / "suites/explicit.txt"
FIELDS = ("routine", "type", "m", "n", "batch", "framework", "impl", "ms_median", "ms_min", "ms_max", "reps", "residual",
          "device", "commit", "date")
TYPES = {"s": "float32", "d": "float64", "c": "complex64", "z": "complex128"}


def cases():
    for line in SUITE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            _, _, letter, m, n, batch = line.split()
            yield letter, int(m), int(n), int(batch)


class Torch:
    name = "torch"

    def __init__(self):
        import torch

        import batchqr
        self.torch = torch
        self.functions = {"batchqr": batchqr.qr, "torch": torch.linalg.qr}

    def array(self, letter, shape):
        return self.torch.randn(shape, dtype=getattr(self.torch, TYPES[letter]), device="cuda")

    def run(self, function, a, calls=1):
        """ms for a call, and the last one's result."""
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.torch.cuda.synchronize()
        begin.record()
        for _ in range(calls):
            result = function(a)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / calls, result

    def largest(self, x):
        return float(x.abs().max())


class CuPy(Torch):
    name = "cupy"

    def __init__(self):
        import cupy

        import batchqr
        self.cupy = cupy
        self.functions = {"batchqr": batchqr.qr, "cupy": cupy.linalg.qr}

    def array(self, letter, shape):
        return self.cupy.random.standard_normal(shape, dtype=TYPES[letter])

    def run(self, function, a, calls=1):
        begin, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        self.cupy.cuda.Device().synchronize()
        begin.record()
        for _ in range(calls):
            result = function(a)
        end.record()
        end.synchronize()
        return self.cupy.cuda.get_elapsed_time(begin, end) / calls, result

    def largest(self, x):
        return float(abs(x).max())


class Jax(CuPy):
    name = "jax"

    def __init__(self):
        import jax

        import batchqr.jax
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_default_matmul_precision", "highest")  # of A - QR
        self.jax = jax
        self.functions = {"batchqr": jax.jit(batchqr.jax.qr), "jax": jax.jit(jax.vmap(jax.numpy.linalg.qr))}

    def array(self, letter, shape):
        return self.jax.random.normal(self.jax.random.key(1), shape, dtype=TYPES[letter])

    def run(self, function, a, calls=1):
        self.jax.block_until_ready(a)
        begin = time.perf_counter()
        for _ in range(calls):
            result = function(a)
        self.jax.block_until_ready(result)
        return 1e3 * (time.perf_counter() - begin) / calls, result


def measure(framework, function, letter, m, n, batch, limit):
    """Times in ms and the largest entry of A - QR; None where a smaller batch says that it takes too long."""
    small = max(1, batch // 64)
    for _ in range(2):
        ms, _ = framework.run(function, framework.array(letter, (small, m, n)))
    if ms * batch / small > 1e3 * limit and ms > 20:
        return None
    a = framework.array(letter, (batch, m, n))
    ms, (q, r) = framework.run(function, a)
    residual = framework.largest(q @ r - a)
    calls, times = 10 if ms < 20 else 1, []
    while len(times) < 10 and sum(times) * calls < 1e3 * limit:
        times.append(framework.run(function, a, calls)[0])
    return times[1:] or times, residual


def rows(limit, commit, only, ours):
    import torch
    device = torch.cuda.get_device_name()
    for make in (Torch, CuPy, Jax):
        if only not in (None, make.name):
            continue
        try:
            framework = make()
        except ImportError as missing:
            print("left out:", missing, file=sys.stderr)
            continue
        for letter, m, n, batch in cases():
            for impl, function in framework.functions.items():
                if ours and impl != "batchqr":
                    continue
                found = measure(framework, function, letter, m, n, batch, limit)
                if found is None:
                    print(f"left out: {impl} of {batch} x {m} x {n} {letter}, over {limit} s", file=sys.stderr)
                    continue
                times, residual = found
                yield dict(zip(FIELDS, (
                    "qr", letter, m, n, batch, framework.name, impl, f"{statistics.median(times):.5g}",
                    f"{min(times):.5g}", f"{max(times):.5g}", len(times), f"{residual:.2g}", device, commit,
                    datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"))))


def plot(path, results, reference):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    plt.rcParams["svg.hashsalt"] = "batchqr"

    def read(name):
        with open(name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    measured = {}
    for row in read(results):
        measured.setdefault((row["framework"], row["impl"]), {})[row["type"], row["m"], row["n"], row["batch"]] = row
    in_c = {(row["type"], row["m"], row["n"], row["batch"]): float(row["ms_median"])
            for row in read(reference) if row["impl"] == "batchqr"}
    order = [case for case in ((x[0], *map(str, x[1:])) for x in cases()) if case in in_c]
    figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
    styles = {"torch": "#d55e00", "cupy": "#009e73", "jax": "#0072b2"}
    axes.plot([in_c[case] for case in order], range(len(order)), "k|", markersize=14, label="batch_qr, from C")
    for (framework, impl), found in measured.items():
        own = impl == "batchqr"
        shown = [(float(found[case]["ms_median"]), i) for i, case in enumerate(order) if case in found]
        axes.plot(*zip(*shown), "o" if own else "x", color=styles[framework],
                  label=f"batchqr.qr, {framework}" if own else f"{framework}'s own")
    axes.set(xscale="log", xlabel="ms for one call", yticks=range(len(order)),
             yticklabels=[f"{int(batch):,} of {m} × {n} {t}".replace(",", " ") for t, m, n, batch in order])
    axes.invert_yaxis()
    axes.grid(axis="x", color="#e4e7eb")
    axes.legend(fontsize=8, loc="lower right")
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--limit", type=float, default=1)
    parser.add_argument("--commit")
    parser.add_argument("--ours", action="store_true")
    parser.add_argument("--only", choices=[make.name for make in (Torch, CuPy, Jax)])
    parser.add_argument("--plot", nargs=3, metavar=("FILE", "CSV", "C"))
    options = parser.parse_args()
    if options.plot:
        plot(*options.plot)
    if options.out:
        commit = options.commit or subprocess.run(["git", "rev-parse", "--short", "HEAD"], check=True, text=True,
                                                  stdout=subprocess.PIPE).stdout.strip()
        with open(options.out / "frameworks.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            for row in rows(options.limit, commit, options.only, options.ours):
                writer.writerow(row)
                file.flush()
                print(*row.values(), sep=",", flush=True)


if __name__ == "__main__":
    main()
