# SPDX-License-Identifier: BSD-3-Clause
"""batchqr for JAX: functions that XLA calls, on CPUs and GPUs, inside jit, vmap, grad and shard_map as well as outside.
Leading axes are batch axes, those of vmap among them: a batch is one call. Derivatives are of any order.

install() puts them in the place of what jax.numpy.linalg and jax.lax.linalg call."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from . import _checks, _xla
from ._arrays import broadcast
from ._jax_spectral import (
    eigh, eigvalsh, matrices, matrix_rank, numbers, pinv, precise, pseudoinverse, qr_pivoted, svd, svd_lowrank, svdvals)
from ._routines import GeqrfResult, LstsqRankResult, LstsqResult, QRResult
from ._xla import adjoint as _adjoint

__all__ = ["eigh", "eigvalsh", "geqrf", "householder_product", "install", "lstsq", "matrix_rank", "ormqr", "pinv", "qr",
           "qr_pivoted", "svd", "svd_lowrank", "svdvals", "uninstall", "use"]


# --- QR, and its derivative

@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _qr(a: Any, positive: bool) -> Any:
    return _xla.qr(a, positive)


@_qr.defjvp
@precise
def _qr_jvp(positive: bool, primals: Any, tangents: Any) -> Any:
    """With A1 the first k columns and dA1 R1^-1 = Q C + (I - Q Q^H) D: dQ = Q W + (I - Q Q^H) D, where W is skew and has C's
    part below the diagonal; of A = Q R follows dR = Q^H dA + dQ^H A."""
    (a,), (da,) = primals, tangents
    q, r = _qr(a, positive)
    k = q.shape[-1]
    scaled = jax.lax.linalg.triangular_solve(r[..., :k], da[..., :k], left_side=False, lower=False)
    c = _adjoint(q) @ scaled
    below = jnp.tril(c, -1)
    turned = below - _adjoint(below)
    if jnp.iscomplexobj(c):
        turned = turned + c * jnp.eye(k, dtype=c.dtype) - (c.real * jnp.eye(k, dtype=c.real.dtype)).astype(c.dtype)
    dq = q @ (turned - c) + scaled
    dr = jnp.triu(_adjoint(q) @ da + _adjoint(dq) @ a)
    return (q, r), (dq, dr)


def qr(a: Any, mode: Literal["reduced", "complete", "r"] = "reduced", *, positive: bool = False) -> Any:
    """A = QR. a (..., m, n); Q (..., m, k) and R (..., k, n) with k = min(m, n), "complete": Q (..., m, m) and R (..., m, n),
    "r": R alone, (..., k, n). positive: R's diagonal is not negative. "complete" has no derivative where m > n."""
    _checks.choice("mode", mode, "reduced", "complete", "r")
    a = matrices(a, "a")
    *members, m, n = a.shape
    if mode == "complete" and m > n:
        factored, tau = _xla.geqrf(a, positive)
        return QRResult(_xla.all_of_q(factored, tau), jnp.triu(factored))
    q, r = _qr(a, positive)
    return r if mode == "r" else QRResult(q, r)


def geqrf(a: Any, *, positive: bool = False) -> GeqrfResult:
    """A = QR in LAPACK's format: a (..., m, n) becomes R and the reflectors' vectors, tau is (..., min(m, n))."""
    return GeqrfResult(*_xla.geqrf(matrices(a, "a"), positive))


def _check_reflectors(a: Any, tau: Any) -> None:
    if tau.ndim != a.ndim - 1 or tau.shape[:-1] != a.shape[:-2] or tau.shape[-1] > min(a.shape[-2:]):
        raise ValueError(f"tau of shape {tau.shape} for a of shape {a.shape}: the same leading axes, and at most min(m, n) "
                         "elements in the last one")
    _check_type(tau, a, "tau")


def _check_type(x: Any, a: Any, name: str) -> None:
    if x.dtype != a.dtype:
        raise TypeError(f"{name} is of type {x.dtype}, the matrices of type {a.dtype}")


def householder_product(a: Any, tau: Any) -> Any:
    """Q of geqrf()'s result, (..., m, n) with m >= n; tau (..., k), k <= n. No derivative."""
    a, tau = matrices(a, "a"), numbers(tau)
    _check_reflectors(a, tau)
    if a.shape[-2] < a.shape[-1]:
        raise ValueError(f"a of shape {a.shape}: Q has at most as many columns as rows")
    return _xla.orgqr(a, tau)


def ormqr(a: Any, tau: Any, c: Any, left: bool = True, transpose: bool = False) -> Any:
    """op(Q) C or C op(Q) with Q of geqrf()'s result; leading axes are broadcast. No derivative. See batchqr.ormqr()."""
    a, tau, c = matrices(a, "a"), numbers(tau), matrices(c, "c")
    _check_reflectors(a, tau)
    _check_type(c, a, "c")
    rows = c.shape[-2 if left else -1]
    if a.shape[-2] != rows:
        raise ValueError(f"a of shape {a.shape} for c of shape {c.shape}: Q has {rows} rows")
    members = broadcast(a.shape[:-2], c.shape[:-2])
    return _xla.ormqr(jnp.broadcast_to(a, (*members, *a.shape[-2:])), jnp.broadcast_to(tau, (*members, tau.shape[-1])),
                      jnp.broadcast_to(c, (*members, *c.shape[-2:])), left, transpose)


# --- least squares

def _solve(r: Any, b: Any, adjoint: bool) -> Any:
    return jax.lax.linalg.triangular_solve(r, b, left_side=True, lower=False, transpose_a=adjoint, conjugate_a=adjoint)


def _norms(residual: Any) -> Any:
    """Of columns, with a derivative where they are 0."""
    size = jnp.abs(residual)
    largest = jax.lax.stop_gradient(jnp.max(size, -2, initial=0))
    unit = jnp.where(largest > 0, largest, 1)
    squares = jnp.sum((size / unit[..., None, :]) ** 2, axis=-2)
    return unit * jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1)), squares)


def _lstsq_by_qr(a: Any, b: Any) -> Any:
    """X and the residuals' norms, of what can be differentiated."""
    m, n = a.shape[-2:]
    if m < n:
        q, r = _qr(_adjoint(a), False)
        return q @ _solve(r, b, True), jnp.zeros((*b.shape[:-2], b.shape[-1]), b.real.dtype)
    q, r = _qr(a, False)
    x = _solve(r, _adjoint(q) @ b, False)
    return x, _norms(b - a @ x)


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _lstsq(a: Any, b: Any, adjoint: bool) -> Any:
    return _xla.gels(a, b, adjoint)


@_lstsq.defjvp
@precise
def _lstsq_jvp(adjoint: bool, primals: Any, tangents: Any) -> Any:
    x, norms, info = _lstsq(*primals, adjoint)
    _, (dx, dnorms) = jax.jvp(lambda a, b: _lstsq_by_qr(_adjoint(a) if adjoint else a, b), primals, tangents)
    return (x, norms, info), (dx, dnorms, np.zeros(info.shape, jax.dtypes.float0))


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _lstsq_of_any_rank(a: Any, b: Any, rcond: float) -> Any:
    return _xla.gelsy(a, b, rcond)


@_lstsq_of_any_rank.defjvp
@precise
def _lstsq_of_any_rank_jvp(rcond: float, primals: Any, tangents: Any) -> Any:
    """At constant rank, with the pseudoinverse P: see _pinv_jvp()."""
    (a, b), (da, db) = primals, tangents
    x, rank, info = _lstsq_of_any_rank(a, b, rcond)
    p = pseudoinverse(a, rcond, "qr")
    ph, dah = _adjoint(p), _adjoint(da)
    inside = dah @ (ph @ x)
    dx = p @ (db - da @ x + ph @ (dah @ (b - a @ x)) - a @ inside) + inside
    return (x, rank, info), (dx, *(np.zeros(y.shape, jax.dtypes.float0) for y in (rank, info)))


def lstsq(a: Any, b: Any, *, adjoint: bool = False, rcond: float | None = None) -> LstsqResult | LstsqRankResult:
    """X that minimizes ||A X - B||, or of least norm where A is wide; adjoint: A^H instead of A, which is of full rank, or of
    any rank where rcond is given. a (..., m, n), b (..., rows, k) or (rows,), the leading axes are broadcast; see
    batchqr.lstsq(). Derivatives of any order; with rcond, those at constant rank."""
    rcond = None if rcond is None else _checks.real("rcond", rcond)
    a, b = matrices(a, "a"), numbers(b)
    _check_type(b, a, "b")
    vector = b.ndim == 1
    b = b[:, None] if vector else matrices(b, "b")
    rows = a.shape[-1 if adjoint else -2]
    if b.shape[-2] != rows:
        raise ValueError(f"b of shape {b.shape[:-1] if vector else b.shape} for a of shape {a.shape}: {rows} rows are needed")
    members = broadcast(a.shape[:-2], b.shape[:-2])
    a, b = (jnp.broadcast_to(x, (*members, *x.shape[-2:])) for x in (a, b))
    if rcond is None:
        x, norms, info = _lstsq(a, b, adjoint)
        return LstsqResult(x[..., 0], norms[..., 0], info) if vector else LstsqResult(x, norms, info)
    a = _adjoint(a) if adjoint else a
    x, rank, info = _lstsq_of_any_rank(a, b, rcond)
    with precise:
        norms = _norms(b - a @ x)
    return LstsqRankResult(x[..., 0], norms[..., 0], info, rank) if vector else LstsqRankResult(x, norms, info, rank)


# --- programs that are not changed

_kept: list[Callable[[], None]] = []  # what undoes install()


def _replace(primitive: Any, function: Callable[..., Any], applies: Callable[..., bool]) -> None:
    """function, where it applies, is how the primitive is lowered on CPUs and NVIDIA GPUs."""
    from jax._src.interpreters import mlir
    ours = mlir.lower_fun(function, multiple_results=primitive.multiple_results)
    for platform in ("cpu", "cuda"):
        rules = mlir._platform_specific_lowerings[platform]
        before = rules.get(primitive)
        theirs = before.rule if before is not None else mlir._lowerings[primitive].rule

        def rule(ctx: Any, *operands: Any, theirs: Any = theirs, **parameters: Any) -> Any:
            return (ours if applies(*ctx.avals_in, **parameters) else theirs)(ctx, *operands, **parameters)

        def undo(rules: Any = rules, before: Any = before) -> None:
            if before is None:
                rules.pop(primitive, None)
            else:
                rules[primitive] = before

        try:
            mlir.register_lowering(primitive, rule, platform=platform)
        except NotImplementedError:  # JAX is installed without it
            continue
        _kept.append(undo)


def _has_type(x: Any) -> bool:
    return x.dtype in (np.float32, np.float64, np.complex64, np.complex128)


def _is_plain(a: Any, subset_by_index: Any = None, algorithm: Any = None, **_: Any) -> bool:
    """All singular values or eigenvalues, by whatever algorithm."""
    whole = subset_by_index is None or tuple(subset_by_index) == (0, min(a.shape[-2:]))
    return _has_type(a) and 0 not in a.shape and whole and (algorithm is None or algorithm.name == "DEFAULT")


def _qr_of_jax(a: Any, *, pivoting: bool = False, full_matrices: bool = False, **_: Any) -> Any:
    if not pivoting:
        return _xla.qr(a, False)
    m, k = a.shape[-2], min(a.shape[-2:])
    factored, tau, order, _ = _xla.geqp3(a, 0, 0, 0)
    reflectors = factored[..., :k]
    if full_matrices and m > k:
        return _xla.all_of_q(reflectors, tau), jnp.triu(factored), order
    return _xla.orgqr(reflectors, tau), jnp.triu(factored[..., :k, :]), order


def _svd_of_jax(a: Any, *, full_matrices: bool, compute_uv: bool, **_: Any) -> Any:
    if not compute_uv:
        return (_xla.svdvals(a)[0],)
    u, s, vh = _xla.full_svd(a) if full_matrices else _xla.svd(a)
    return s, u, vh


def _eigh_of_jax(a: Any, *, lower: bool, **_: Any) -> Any:
    w, v = _xla.syevd(a, lower, True)
    return v, w


def install() -> None:
    """jax.numpy.linalg's qr, svd, svdvals and eigh, jax.scipy.linalg.qr, jax.lax.linalg's qr, householder_product, ormqr,
    svd and eigh, and what calls them (lstsq, pinv, matrix_rank, cond, eigvalsh, ...), are batchqr's from now on, on CPUs
    and NVIDIA GPUs. Functions that were compiled before are compiled anew. Calls that ask for a certain algorithm or for a
    part of the eigenvalues stay JAX's."""
    from jax._src.lax import linalg
    _xla.check_available()
    if _kept:
        return
    _replace(linalg.qr_p, _qr_of_jax, lambda a, *, pivoting=False, full_matrices=False, **_:
             _has_type(a) and (pivoting or not full_matrices or a.shape[-2] <= a.shape[-1]))
    _replace(linalg.geqrf_p, lambda a, **_: _xla.geqrf(a, False), lambda a, **_: _has_type(a))
    _replace(linalg.householder_product_p, lambda a, tau, **_: _xla.orgqr(a, tau), lambda a, tau, **_: _has_type(a))
    _replace(linalg.svd_p, _svd_of_jax, _is_plain)
    _replace(linalg.eigh_p, _eigh_of_jax, _is_plain)
    if hasattr(linalg, "ormqr_p"):  # not in JAX 0.7
        _replace(linalg.ormqr_p, lambda a, tau, c, *, left, transpose: _xla.ormqr(a, tau, c, left, transpose),
                 lambda a, tau, c, **_: _has_type(a))
    jax.clear_caches()


def uninstall() -> None:
    """JAX's own functions again."""
    while _kept:
        _kept.pop()()
    jax.clear_caches()


@contextlib.contextmanager
def use() -> Iterator[None]:
    """install() within a `with` statement."""
    if _kept:
        yield
        return
    install()
    try:
        yield
    finally:
        uninstall()
