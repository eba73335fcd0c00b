#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tables of the papers behind the library, on one GPU, by the Python package and PyTorch: least squares, QR in half
precision and the SVD of a tall matrix, all with how accurate they are. docs/papers.md has the papers' own figures.

  papers.py --out DIR [--seconds 50]    writes DIR/papers.csv; starts no other case after so long

Matrices have singular values from 1 to 1 / --condition, geometrically spaced, and come from a few reflections of a
diagonal matrix, so that they are made in a moment at any size. A time is the least of --reps calls, each on fresh data;
beyond 2^30 elements of one. What does not fit in the memory has no time."""
import argparse
import csv
import pathlib
import time

import torch

import batchqr

TYPES = {"s": torch.float32, "d": torch.float64}
EPS = {"s": 2.0**-24, "d": 2.0**-53}
LSTSQ = [("d", 8192, 8192), ("s", 8192, 8192), ("d", 16384, 8192), ("s", 16384, 8192), ("d", 16384, 16384),
         ("s", 16384, 16384), ("d", 32768, 16384), ("d", 32768, 32768), ("s", 32768, 32768), ("s", 4194304, 1024),
         ("d", 4194304, 1024), ("s", 65536, 65536), ("d", 65536, 65536)]
QR = [("s", 8192, 8192), ("s", 8192, 4096), ("s", 16384, 16384), ("s", 32768, 16384), ("s", 32768, 32768),
      ("s", 262144, 1024)]
SVD = [("s", 524288, 1024), ("d", 524288, 1024)]
FIELDS = ("table", "type", "m", "n", "condition", "impl", "ms", "residual", "orthogonality", "iterations")


def matrix(letter, m, n, condition, seed=1):
    """U diag(s) V^T with U and V of four reflections each."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    a = torch.zeros((n, m), dtype=TYPES[letter], device="cuda").T  # by columns
    steps = torch.arange(n, device="cuda", dtype=torch.float64) / max(n - 1, 1)
    a.diagonal()[:] = torch.pow(torch.tensor(condition, dtype=torch.float64, device="cuda"), -steps).to(a.dtype)
    for _ in range(4):
        for left in (True, False):
            v = torch.randn(m if left else n, generator=generator, dtype=a.dtype, device="cuda")
            v /= torch.linalg.vector_norm(v)
            if left:
                a.addr_(v, v @ a, alpha=-2)
            else:
                a.addr_(a @ v, v, alpha=-2)
    return a


def timed(call):
    """The call's result and its time in ms."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    result = call()
    end.record()
    end.synchronize()
    return result, begin.elapsed_time(end)


def products(a, x, rows=1 << 16):
    """a @ x in double precision, a few rows at a time."""
    return torch.cat([a[i:i + rows].double() @ x for i in range(0, a.shape[0], rows)])


def normal_residual(letter, a, b, x):
    """||A^T (b - A x)|| next to what QR's rounding may make of it, eps ||A|| (||A|| ||x|| + ||b||), as xQRT17 has it but
    for the sizes. ||A|| is 1."""
    r = b.double() - products(a, x.double())
    left = sum(a[i:i + (1 << 16)].double().T @ r[i:i + (1 << 16)] for i in range(0, a.shape[0], 1 << 16))
    return float(torch.linalg.vector_norm(left) /
                 (EPS[letter] * (torch.linalg.vector_norm(x.double()) + torch.linalg.vector_norm(b.double()))))


def refined(a, b, handle=None):
    """X, and the steps that it took: see batchqr.lstsq()."""
    result = batchqr.lstsq(a, b, overwrite=True, iterations=True, handle=handle)
    return result.x, result.iterations


def lstsq(letter, m, n, condition, reps):
    b = torch.randn(m, generator=torch.Generator(device="cuda").manual_seed(7), dtype=TYPES[letter], device="cuda")
    direct = batchqr.Handle(compute="native")
    calls = {
        "batchqr": lambda a: refined(a, b),
        "batchqr native": lambda a: refined(a, b, direct),
        "torch": lambda a: (torch.linalg.lstsq(a, b[:, None]).solution[:, 0], ""),
    }
    for impl, call in calls.items():
        if impl == "torch" and m * n > 1 << 29:
            continue
        best = float("inf")
        for _ in range(reps):
            a = matrix(letter, m, n, condition)
            (x, iterations), ms = timed(lambda: call(a))
            best = min(best, ms)
            del a
        residual = normal_residual(letter, matrix(letter, m, n, condition), b, x)
        yield impl, best, residual, "", iterations if iterations == "" else int(iterations)


def half_qr(letter, m, n, condition, reps):
    half = batchqr.Handle(compute="half")
    for times, name in enumerate(("reflectors", "Gram-Schmidt", "Gram-Schmidt twice")):
        best = float("inf")
        for _ in range(reps):
            a = matrix(letter, m, n, condition)
            (q, r), ms = timed(lambda: batchqr.qr(a, handle=half, gram_schmidt=times))
            best = min(best, ms)
        residual = float(torch.linalg.norm(a - q @ r) / torch.linalg.norm(a))
        yield name, best, residual, float(torch.linalg.norm(q.T @ q - torch.eye(n, device="cuda")) / n**0.5), ""


def svd(letter, m, n, condition, reps):
    best = float("inf")
    for _ in range(reps):
        a = matrix(letter, m, n, condition)
        (u, s, vh), ms = timed(lambda: batchqr.svd(a, overwrite=True))
        best = min(best, ms)
    a = matrix(letter, m, n, condition)
    residual = float(torch.linalg.norm(a - (u * s) @ vh) / torch.linalg.norm(a))
    yield "batchqr", best, residual, float(
        torch.linalg.norm(u.T @ u - torch.eye(n, dtype=u.dtype, device="cuda")) / n**0.5), ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=50)
    parser.add_argument("--condition", type=float, default=1e6)
    parser.add_argument("--reps", type=int, default=2)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    cases = [("lstsq", lstsq, *case) for case in LSTSQ] + [("qr", half_qr, *case) for case in QR] + \
            [("svd", svd, *case) for case in SVD]
    begin = time.monotonic()
    with open(args.out / "papers.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        for table, run, letter, m, n in sorted(cases, key=lambda case: case[3] * case[4]):
            if time.monotonic() - begin > args.seconds:
                break
            reps = 1 if m * n > 1 << 30 else args.reps
            try:
                for impl, ms, residual, orthogonality, iterations in run(letter, m, n, args.condition, reps):
                    row = (table, letter, m, n, args.condition, impl, f"{ms:.4g}", f"{residual:.3g}",
                           f"{orthogonality:.3g}" if orthogonality != "" else "", iterations)
                    writer.writerow(row)
                    file.flush()
                    print(*row, flush=True)
            except (torch.OutOfMemoryError, batchqr.Error) as error:
                print(table, letter, m, n, str(error).splitlines()[0][:120], flush=True)
            torch.cuda.empty_cache()


main()
