#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A model of gels_refine's numbers (kernels/refine/refine.h) on the CPU, with NumPy: R from the Cholesky factor of A^T A whose
entries are rounded to FP16, then CGLS with the same rules for when to stop. Prints, for spectra of several kinds, steps and
backward errors in units of eps ||A||, of X and of what QR in the working precision gives.

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


def r_of(a, triangle=128):
    """None where a pivot is too small."""
    x = rounded(a.astype(np.float32).T.copy()).T
    square, n = x.T @ x, a.shape[1]
    lengths2, r = np.diag(square).copy(), np.zeros((n, n), np.float32)
    for j in range(0, n, triangle):
        k = min(j + triangle, n)
        try:
            r[j:k, j:k] = np.linalg.cholesky(square[j:k, j:k].astype(np.float64)).T
        except np.linalg.LinAlgError:
            return None
        if (np.diag(r)[j:k]**2 < 2.0**-20 * lengths2[j:k]).any():
            return None
        r[j:k, k:] = np.linalg.inv(r[j:k, j:k]).T @ square[j:k, k:]
        square[k:, k:] -= r[j:k, k:].T @ r[j:k, k:]
    return r


def applied(r, x, adjoint):
    """R^-1 x or R^-T x in single precision, in x's own."""
    top = np.abs(x).max()
    if not 0 < top < math.inf:
        return 0 * x
    scale = 2.0**-math.floor(math.log2(top))
    return (np.linalg.solve(r.T if adjoint else r, (x * scale).astype(np.float32)) / scale).astype(x.dtype)


def remembered(most, last, alpha, beta, before):
    """`most` and `last` after a step: see remember() in kernels/refine/refine_iterate.cu. before: the last step's alpha."""
    carried = last * math.sqrt(beta / before * alpha) if beta else 0.0
    own, top = math.sqrt(alpha), (most if beta else 0.0) + carried * carried
    half, beside = (top - alpha) / 2, -carried * own
    root = math.hypot(half, beside)
    u, v = (root + half, beside) if half > 0 else (beside, root - half)
    size = math.hypot(u, v)
    u, v = (u / size, v / size) if size else (0.0, 1.0)
    return (top + alpha) / 2 + root, v * own - u * carried


def solve(a, b, r, iterates=None, probes=False):
    """y, steps, whether it is accepted; the bounds of its error, the first without sigma, and sigma as far as known.
    `iterates`, a list, gets y after each step. `probes`: b is the one of random signs."""
    length = float(np.linalg.norm(a))
    y, residual, now, aim = np.zeros(a.shape[1], a.dtype), b.copy(), "first", aim_of(a)
    gamma = start = least = before = first = alpha = beta = most = last = 0.0
    shrinks, since, idle, steps, p = 1.0, 0, 0, 0, None
    while True:
        if now == "iterates":
            u = applied(r, p, False)
            q = a @ u
            qq = float(q @ q)
            alpha, previous = gamma / qq, alpha
            most, last = remembered(most, last, alpha, beta, previous)
            shrinks = min(shrinks, 1 / most)
            y, residual = y + a.dtype.type(alpha) * u, residual - a.dtype.type(alpha) * q
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
        if now == "first":
            first = math.sqrt(ss)
        if probes:
            error = max(error, aim * 32 * math.sqrt(len(y)) * math.sqrt(ss) / first)
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
        gamma = ss
        p = s + a.dtype.type(beta) * p if beta else s


def aim_of(a):
    return np.finfo(a.dtype).eps / 2 / (4 if a.dtype == np.float32 else 2)


def refine(a, b, r):
    """y, steps, whether it is accepted, with a right-hand side of random signs beside it."""
    probe = np.random.default_rng(5).choice([-1.0, 1.0], len(b)).astype(a.dtype)
    y, steps, good, far, apart, sigma = solve(a, b, r)
    _, probed, also, _, _, other = solve(a, probe, r, probes=True)
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
    print(f"{'spectrum':12}{'condition':>10} {'b':12}{'type':>5}{'steps':>7}{'X':>9}{'QR':>7}")
    for kind in ("geometric", "arithmetic", "one small", "one large"):
        for condition in (1e2, 1e3, 1e4, 1e6, 1e8, 1e12):
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
                    r = r_of(a * scale)
                    y, steps, good = (a[0], 0, False) if r is None else refine(a * scale, c, r)
                    error = f"{backward_error(a, c, y * scale):.2f}" if good else "-"
                    print(f"{kind:12}{condition:10.0e} {side:12}{letter:>5}{steps:7}{error:>9}{direct:7.2f}", flush=True)


if __name__ == "__main__":
    main()
