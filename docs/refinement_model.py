#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A model of gels_refine's numbers (kernels/refine/refine.h) on the CPU, with NumPy: R from blocked QR whose products have FP16
operands (`half`) or single precision (`single`), then CGLS with the same rules for when to stop. Prints, for spectra of
several kinds, steps and backward errors in units of eps ||A||, of X and of what QR in the working precision gives.

  refinement_model.py [ROWS COLUMNS]"""
import math
import sys

import numpy as np

PATIENCE, MOST = 6, 60


def rounded(x):
    """Rows scaled by powers of two as gemm_fp16.cu has it, to FP16 and back."""
    top = np.abs(x).max(axis=1, keepdims=True)
    scale = np.exp2(14 - np.floor(np.log2(np.where(top > 0, top, 1)))).astype(np.float32)
    return (x * scale).astype(np.float16).astype(np.float32) / scale


def r_of(a, half, block=32):
    multiply = (lambda x, y: rounded(x) @ rounded(y.T).T) if half else np.matmul
    a = a.astype(np.float32)
    m, n = a.shape
    for j in range(0, n, block):
        panel = a[j:, j:j + block].copy()
        k = panel.shape[1]
        v, t = np.zeros((m - j, k), np.float32), np.zeros((k, k), np.float32)
        for i in range(k):
            x = panel[i:, i].copy()
            beta = -np.copysign(np.linalg.norm(x), x[0])
            tau = (beta - x[0]) / beta
            x[1:] /= x[0] - beta
            x[0] = 1
            panel[i:, i:] -= tau * np.outer(x, x @ panel[i:, i:])
            t[:i, i] = -tau * (t[:i, :i] @ (v[i:, :i].T @ x))
            t[i, i] = tau
            v[i:, i] = x
        a[j:, j:j + block] = panel
        right = a[j:, j + block:]
        if right.size:
            right -= multiply(v, multiply(t.T.copy(), multiply(v.T.copy(), right)))
    return np.triu(a[:n])


def applied(r, x, adjoint):
    """R^-1 x or R^-T x in single precision, in x's own."""
    top = np.abs(x).max()
    if not 0 < top < math.inf:
        return 0 * x
    scale = 2.0**-math.floor(math.log2(top))
    return (np.linalg.solve(r.T if adjoint else r, (x * scale).astype(np.float32)) / scale).astype(x.dtype)


def solve(a, b, r, iterates=None):
    """y, steps, whether it is accepted; the bounds of its error, the first without sigma, and sigma as far as known.
    `iterates`, a list, gets y after each step."""
    length = float(np.linalg.norm(a))
    y, residual, now, aim = np.zeros(a.shape[1], a.dtype), b.copy(), "first", aim_of(a)
    gamma = pp = start = least = before = 0.0
    shrinks, since, idle, steps, p = 1.0, 0, 0, 0, None
    while True:
        if now == "iterates":
            u = applied(r, p, False)
            q = a @ u
            qq = float(q @ q)
            shrinks = min(shrinks, qq / pp)
            y, residual = y + a.dtype.type(gamma / qq) * u, residual - a.dtype.type(gamma / qq) * q
            if iterates is not None:
                iterates.append(y)
        elif now == "checks":
            residual = b - a @ y
        w = a.T @ residual
        s = applied(r, w, True)
        ss, norm = float(s @ s), float(np.linalg.norm(residual))
        far = math.sqrt(ss) / float(np.linalg.norm(y)) / length if y.any() else math.inf
        apart = (float(np.linalg.norm(w)) / norm if norm else 0) / length
        error = min(far / math.sqrt(shrinks), apart)
        steps, beta = steps + (now != "first"), 0.0
        if now != "iterates":
            better = now == "first" or error <= before / 2
            before = error
            if error <= aim or (not better and error <= 2 * aim):
                return y, steps, True, far, apart, math.sqrt(shrinks)
            if not better or steps >= MOST:
                return y, steps, False, far, apart, math.sqrt(shrinks)
            now, start, least, since, idle = "iterates", math.sqrt(ss), math.sqrt(ss), 0, 0
        else:
            since += 1
            idle = 0 if math.sqrt(ss) < 0.7 * least else idle + 1
            least, beta = min(least, math.sqrt(ss)), ss / gamma
            if error <= aim or idle >= PATIENCE:
                now = "checks"
            elif steps >= MOST or (since >= PATIENCE and math.log2(start / least) / since * 2 * (MOST - steps) <
                                   math.log2(error / aim)):
                return y, steps, False, far, apart, math.sqrt(shrinks)
        gamma, pp = ss, ss + beta * beta * pp
        p = s + a.dtype.type(beta) * p if beta else s


def aim_of(a):
    return np.finfo(a.dtype).eps / 2 / (4 if a.dtype == np.float32 else 2)


def refine(a, b, r):
    """y, steps, whether it is accepted, with a right-hand side of random signs beside it."""
    probe = np.random.default_rng(5).choice([-1.0, 1.0], len(b)).astype(a.dtype)
    y, steps, good, far, apart, sigma = solve(a, b, r)
    _, probed, also, _, _, other = solve(a, probe, r)
    error = min(far / min(sigma, other), apart)
    return y, max(steps, probed), good and also and error <= 2 * aim_of(a)


def backward_error(a, b, x):
    """The least ||E|| for which x solves for a + E, next to ||a|| eps (Walden, Karlson and Sun), in long double."""
    eps = np.finfo(a.dtype).eps / 2
    r = (b.astype(np.longdouble) - a.astype(np.longdouble) @ x.astype(np.longdouble)).astype(float)
    u, s, _ = np.linalg.svd(a.astype(float), full_matrices=False)
    size = float(np.linalg.norm(x.astype(float)))
    mu = np.linalg.norm(r) / size
    return np.linalg.norm(s * (u.T @ r) / np.hypot(s, mu)) / size / (np.linalg.norm(s) * eps)


def spectrum(kind, condition, m, n, random):
    steps = np.arange(n) / (n - 1)
    s = {"geometric": condition**-steps, "arithmetic": 1 - (1 - 1 / condition) * steps,
         "one small": np.where(steps < 1, 1, 1 / condition), "one large": np.where(steps > 0, 1 / condition, 1)}[kind]
    u, v = np.linalg.qr(random.standard_normal((m, n)))[0], np.linalg.qr(random.standard_normal((n, n)))[0]
    return (u * s) @ v.T


def main():
    m, n = (int(x) for x in sys.argv[1:]) if len(sys.argv) == 3 else (512, 256)
    random = np.random.default_rng(1)
    print(f"{'spectrum':12}{'condition':>10} {'b':12}{'type':>5}{'R':>8}{'steps':>7}{'X':>9}{'QR':>7}")
    for kind in ("geometric", "arithmetic", "one small", "one large"):
        for condition in (1e2, 1e4, 1e6, 1e8, 1e12):
            exact = spectrum(kind, condition, m, n, random)
            x = random.standard_normal(n)
            sides = {"random": random.standard_normal(m), "consistent": exact @ x,
                     "far": exact @ x + 1e6 * random.standard_normal(m)}
            for side, b in sides.items():
                for letter, dtype in (("d", np.float64), ("s", np.float32)):
                    if letter == "s" and condition > 1e6:
                        continue
                    a, c = exact.astype(dtype), b.astype(dtype)
                    scale = np.exp2(-np.floor(np.log2(np.linalg.norm(a, axis=0)))).astype(dtype)
                    q, r = np.linalg.qr(a)
                    direct = backward_error(a, c, np.linalg.solve(r, q.T @ c))
                    for half in (True, False):
                        y, steps, good = refine(a * scale, c, r_of(a * scale, half))
                        error = f"{backward_error(a, c, y * scale):.2f}" if good else "-"
                        print(f"{kind:12}{condition:10.0e} {side:12}{letter:>5}{'half' if half else 'single':>8}{steps:7}"
                              f"{error:>9}{direct:7.2f}", flush=True)


if __name__ == "__main__":
    main()
