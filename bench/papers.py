#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tables of the papers behind the library, on one GPU, by the Python package and PyTorch: least squares, QR in half
precision and the SVD of a tall matrix, all with how accurate they are. docs/papers.md has the papers' own figures.

  papers.py --out DIR [--tables lstsq,qr] [--types s,d] [--seconds 50]
                                writes DIR/papers.csv; starts no other case after so long

  lstsq     least squares, by the library in modes auto and native, and by PyTorch; tables here and below have
            singular values from 1 to 1 / --condition, geometrically spaced, where nothing else is said
  spectra   least squares of one size for matrices of all kinds: entries uniform in (0, 1) and (-1, 1) or normal,
            singular values spaced arithmetically or geometrically or all 1 but the last, by condition numbers
  qr        Q and R in half precision, by reflectors and by Gram-Schmidt
  accuracy  errors of Q and R of 4096 x 4096 in all precisions, for matrices of four kinds
  svd       the SVD of a tall matrix
  lowrank   how near to A what has been cut off to some ranks is, next to what the singular values say
  cgls      least squares by CGLS, with R of recursive Gram-Schmidt in half precision as preconditioner, for the matrices of
            `spectra`: what the paper does. Each step's residual goes to DIR/cgls.csv

A matrix with given singular values comes from a few reflections of a diagonal matrix, so that it is made in a moment
at any size. A time is the least of --reps calls, each on fresh data; beyond 2^30 elements of one. What does not fit in
the memory has no time."""
import argparse
import csv
import functools
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
SPECTRA = [(letter, 32768, 16384, kind, condition) for letter in "sd"
           for kind, condition in (("positive", None), ("uniform", None), ("normal", None), ("arithmetic", 1e5),
                                   ("geometric", 1e2), ("geometric", 1e3), ("geometric", 1e4), ("one small", 1e3),
                                   ("one small", 1e4), ("one small", 1e5), ("one small", 1e6))]
ACCURACY = [(letter, 4096, 4096, kind, condition) for letter in "sd"
            for kind, condition in (("uniform", None), ("normal", None), ("arithmetic", 1e4), ("geometric", 1e4))]
MOST_STEPS = 60
LOWRANK = [(letter, 524288, 1024, "arithmetic", 1e6) for letter in "sd"]
FIELDS = ("table", "type", "m", "n", "kind", "condition", "impl", "ms", "residual", "orthogonality", "iterations")


def singular_values(kind, condition, n):
    """Double precision, descending from 1."""
    steps = torch.arange(n, device="cuda", dtype=torch.float64) / max(n - 1, 1)
    if kind == "arithmetic":
        return 1 - steps * (1 - 1 / condition)
    if kind == "one small":
        return torch.where(steps < 1, 1.0, 1 / condition)
    return torch.pow(torch.tensor(condition, dtype=torch.float64, device="cuda"), -steps)


def matrix(letter, m, n, kind, condition, seed=1):
    """Random entries; or U diag(s) V^T with U and V of four reflections each."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    a = torch.zeros((n, m), dtype=TYPES[letter], device="cuda").T  # by columns
    if kind in ("positive", "uniform"):
        return a.uniform_(0 if kind == "positive" else -1, 1, generator=generator)
    if kind == "normal":
        return a.normal_(generator=generator)
    a.diagonal()[:] = singular_values(kind, condition, n).to(a.dtype)
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
    for the sizes."""
    v = torch.ones(a.shape[1], dtype=torch.float64, device="cuda")
    for _ in range(8):  # ||A|| to a few digits
        u = products(a, v / torch.linalg.vector_norm(v))
        v = sum(a[i:i + (1 << 16)].double().T @ u[i:i + (1 << 16)] for i in range(0, a.shape[0], 1 << 16))
    length = torch.linalg.vector_norm(v).sqrt()
    r = b.double() - products(a, x.double())
    left = sum(a[i:i + (1 << 16)].double().T @ r[i:i + (1 << 16)] for i in range(0, a.shape[0], 1 << 16))
    return float(torch.linalg.vector_norm(left) /
                 (EPS[letter] * length * (length * torch.linalg.vector_norm(x.double()) +
                                          torch.linalg.vector_norm(b.double()))))


def refined(a, b, handle=None):
    """X, and the steps that it took: see batchqr.lstsq()."""
    result = batchqr.lstsq(a, b, overwrite=True, iterations=True, handle=handle)
    return result.x, result.iterations


@functools.cache
def native_handle():
    return batchqr.Handle(compute="native")


def lstsq(letter, m, n, kind, condition, reps, peers=True):
    b = torch.randn(m, generator=torch.Generator(device="cuda").manual_seed(7), dtype=TYPES[letter], device="cuda")
    direct = native_handle()
    calls = {"batchqr": lambda a: refined(a, b), "batchqr native": lambda a: refined(a, b, direct)}
    if peers and m * n <= 1 << 29:
        calls["torch"] = lambda a: (torch.linalg.lstsq(a, b[:, None]).solution[:, 0], "")
    for impl, call in calls.items():
        best = float("inf")
        for _ in range(reps):
            a = matrix(letter, m, n, kind, condition)
            (x, iterations), ms = timed(lambda: call(a))
            best = min(best, ms)
            del a
        residual = normal_residual(letter, matrix(letter, m, n, kind, condition), b, x)
        yield impl, best, residual, "", iterations if iterations == "" else int(iterations)


def spectra(letter, m, n, kind, condition, reps):
    """Of the first kind once more: that one makes the plans."""
    return lstsq(letter, m, n, kind, condition, reps + (kind == SPECTRA[0][3]), peers=False)


def solve_cgls(a, b, r):
    """x, and after each step ||A^T (b - A x)|| as a part of ||A^T b||. In A's type but for R; ends when nothing is gained
    in five steps."""
    def applied(x, transpose):
        scale = torch.linalg.vector_norm(x)
        y = torch.linalg.solve_triangular(r.T if transpose else r, (x / scale).to(r.dtype)[:, None], upper=not transpose)
        return y[:, 0].to(x.dtype) * scale

    x, residual = torch.zeros(a.shape[1], dtype=a.dtype, device="cuda"), b.clone()
    w = a.T @ residual
    first = torch.linalg.vector_norm(w)
    s = applied(w, True)
    p, gamma, history = s, torch.dot(s, s), []
    while len(history) < MOST_STEPS and (len(history) < 6 or min(history[-5:]) < 0.7 * min(history[:-5])):
        u = applied(p, False)
        q = a @ u
        alpha = gamma / torch.dot(q, q)
        x += alpha * u
        residual -= alpha * q
        w = a.T @ residual
        s = applied(w, True)
        gamma, before = torch.dot(s, s), gamma
        p = s + gamma / before * p
        history.append(float(torch.linalg.vector_norm(w) / first))
        if not history[-1] > EPS["s" if a.dtype == torch.float32 else "d"] / 4:  # of what was formed anew; or NaN
            break
    return x, history


def cgls(letter, m, n, kind, condition, reps, curves=None):
    """R's time, and the steps'; of the first kind once more, as in spectra()."""
    b = torch.randn(m, generator=torch.Generator(device="cuda").manual_seed(7), dtype=TYPES[letter], device="cuda")
    half = batchqr.Handle(compute="half")
    for _ in range(reps + (kind == SPECTRA[0][3])):
        a = matrix(letter, m, n, kind, condition)
        (_, r), of_r = timed(lambda: batchqr.qr(a.float(), handle=half, gram_schmidt=1))
        (x, history), of_steps = timed(lambda: solve_cgls(a, b, r))
    if curves is not None:
        curves.writerows((letter, m, n, kind, condition or "", i + 1, f"{part:.3g}") for i, part in enumerate(history))
    residual = normal_residual(letter, a, b, x)
    yield "Gram-Schmidt R", of_r, "", "", ""
    yield "CGLS", of_steps, residual, "", len(history)


def errors_of_qr(a, q, r):
    unit = torch.eye(q.shape[1], dtype=q.dtype, device="cuda")
    return float(torch.linalg.norm(a - q @ r) / torch.linalg.norm(a)), float(
        torch.linalg.norm(q.T @ q - unit) / q.shape[1]**0.5)


def half_qr(letter, m, n, kind, condition, reps):
    half = batchqr.Handle(compute="half")
    for times, name in enumerate(("reflectors", "Gram-Schmidt", "Gram-Schmidt twice")):
        best = float("inf")
        for _ in range(reps):
            a = matrix(letter, m, n, kind, condition)
            (q, r), ms = timed(lambda: batchqr.qr(a, handle=half, gram_schmidt=times))
            best = min(best, ms)
        yield name, best, *errors_of_qr(a, q, r), ""


def accuracy(letter, m, n, kind, condition, reps):
    """The modes that a type has; errors by double precision."""
    for mode in ("half", "auto", "native") if letter == "s" else ("auto", "native"):
        handle, best = batchqr.Handle(compute=mode), float("inf")
        for _ in range(reps):
            a = matrix(letter, m, n, kind, condition)
            (q, r), ms = timed(lambda: batchqr.qr(a, handle=handle))
            best = min(best, ms)
        yield f"batchqr {mode}", best, *errors_of_qr(a.double(), q.double(), r.double()), ""


def tall_svd(letter, m, n, kind, condition, reps):
    best = float("inf")
    for _ in range(reps):
        a = matrix(letter, m, n, kind, condition)
        (u, s, vh), ms = timed(lambda: batchqr.svd(a, overwrite=True))
        best = min(best, ms)
    return u, s, vh, best


def svd(letter, m, n, kind, condition, reps):
    u, s, vh, ms = tall_svd(letter, m, n, kind, condition, reps)
    a = matrix(letter, m, n, kind, condition)
    residual = float(torch.linalg.norm(a - (u * s) @ vh) / torch.linalg.norm(a))
    yield "batchqr", ms, residual, float(
        torch.linalg.norm(u.T @ u - torch.eye(n, dtype=u.dtype, device="cuda")) / n**0.5), ""


def lowrank(letter, m, n, kind, condition, reps):
    """||A - U_r S_r V_r^T|| next to ||A||, and the same of the best approximation."""
    u, s, vh, ms = tall_svd(letter, m, n, kind, condition, reps)
    a = matrix(letter, m, n, kind, condition)
    squares = singular_values(kind, condition, n)**2
    for rank in (16, 64, 128, 256, 512):
        error = torch.linalg.norm(a - (u[:, :rank] * s[:rank]) @ vh[:rank]) / torch.linalg.norm(a)
        yield f"batchqr rank {rank}", ms, float(error), "", ""
        yield f"best rank {rank}", "", float((squares[rank:].sum() / squares.sum()).sqrt()), "", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--tables", default="lstsq,qr,svd,accuracy,lowrank,spectra,cgls")
    parser.add_argument("--types", default="s,d")
    parser.add_argument("--seconds", type=float, default=50)
    parser.add_argument("--condition", type=float, default=1e6)
    parser.add_argument("--reps", type=int, default=2)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    given = ("geometric", args.condition)
    tables = {"lstsq": (lstsq, [(*case, *given) for case in LSTSQ]), "qr": (half_qr, [(*case, *given) for case in QR]),
              "svd": (svd, [(*case, *given) for case in SVD]), "spectra": (spectra, SPECTRA),
              "accuracy": (accuracy, ACCURACY), "lowrank": (lowrank, LOWRANK), "cgls": (cgls, SPECTRA)}
    wanted = args.tables.split(",")
    if unknown := set(wanted) - set(tables):
        parser.error(f"--tables: no table {', '.join(sorted(unknown))}; there are {', '.join(tables)}")
    types = args.types.split(",")
    begin = time.monotonic()
    with open(args.out / "papers.csv", "w", newline="", encoding="utf-8") as file, \
            open(args.out / "cgls.csv", "w", newline="", encoding="utf-8") as steps:
        writer, curves = csv.writer(file), csv.writer(steps)
        writer.writerow(FIELDS)
        curves.writerow(("type", "m", "n", "kind", "condition", "step", "residual"))
        tables["cgls"] = (functools.partial(cgls, curves=curves), SPECTRA)
        cases = [(name, tables[name][0], *case) for name in wanted for case in tables[name][1] if case[0] in types]
        for table, run, letter, m, n, kind, condition in sorted(cases, key=lambda case: case[3] * case[4]):
            if time.monotonic() - begin > args.seconds:
                break
            reps = 1 if m * n > 1 << 30 else args.reps
            try:
                for impl, ms, residual, orthogonality, iterations in run(letter, m, n, kind, condition, reps):
                    row = (table, letter, m, n, kind, condition or "", impl, *(
                        f"{x:.{digits}g}" if x != "" else ""
                        for x, digits in ((ms, 4), (residual, 3), (orthogonality, 3))), iterations)
                    writer.writerow(row)
                    file.flush()
                    print(*row, flush=True)
            except (torch.OutOfMemoryError, batchqr.Error) as error:
                print(table, letter, m, n, str(error).splitlines()[0][:120], flush=True)
            torch.cuda.empty_cache()


main()
