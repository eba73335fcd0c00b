# SPDX-License-Identifier: BSD-3-Clause
"""batchqr.jax's functions for rank, singular values and eigenvalues."""
from __future__ import annotations

from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from . import _checks, _xla
from ._spectral import EighResult, PivotedQRResult, SVDLowrankResult, SVDResult, most_steps
from ._xla import adjoint

# Products in derivatives are as precise as the results: GPUs have faster ones for float32.
precise = jax.default_matmul_precision("float32")


def matrices(x: Any, name: str) -> Any:
    """x as an array of matrices of a type that the library has."""
    x = numbers(x)
    if x.ndim < 2:
        raise ValueError(f"{name} of shape {x.shape}: the last two axes are a matrix's, so there must be two at least")
    if x.dtype not in (jnp.float32, jnp.float64, jnp.complex64, jnp.complex128):
        raise TypeError(f"{name} is of type {x.dtype}: float32, float64, complex64 or complex128")
    return x


def numbers(x: Any) -> Any:
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(jnp.promote_types(x.dtype, jnp.float32))


def _diagonal(x: Any) -> Any:
    return jnp.diagonal(x, axis1=-2, axis2=-1)


def _quotients(x: Any) -> Any:
    """1 / (x_j - x_i), and 0 on the diagonal."""
    eye = jnp.eye(x.shape[-1], dtype=x.dtype)
    return 1 / (x[..., None, :] - x[..., None] + eye) - eye


# --- singular values

@jax.custom_jvp
def _svd(a: Any) -> Any:
    return _xla.svd(a)


@_svd.defjvp
@precise
def _svd_jvp(primals: Any, tangents: Any) -> Any:
    """With P = U^H dA V and F_ij = 1 / (s_j^2 - s_i^2): dS is P's diagonal, dU = U (F o (P S + S P^H)) and
    dV = V (F o (S P + P^H S)), and what of dA is outside of the spaces of U and V."""
    (a,), (da,) = primals, tangents
    u, s, vh = _svd(a)
    v, uh = adjoint(vh), adjoint(u)
    p = uh @ da @ v
    f = _quotients(s * s).astype(a.dtype)
    by_columns, by_rows = s[..., None, :].astype(a.dtype), s[..., None].astype(a.dtype)
    du = u @ (f * (p * by_columns + by_rows * adjoint(p)))
    dv = v @ (f * (by_rows * p + adjoint(p) * by_columns))
    if jnp.iscomplexobj(a):
        turned = 1j * _diagonal(p).imag / jnp.where(s == 0, 1, s)
        du = du + u * turned[..., None, :].astype(a.dtype)
    if a.shape[-2] > a.shape[-1]:
        du = du + (da @ v - u @ p) / by_columns
    if a.shape[-2] < a.shape[-1]:
        dv = dv + (adjoint(da) @ u - v @ adjoint(p)) / by_columns
    return (u, s, vh), (du, _diagonal(p).real, adjoint(dv))


@jax.custom_jvp
def _svdvals(a: Any) -> Any:
    return _xla.svdvals(a)[0]


@_svdvals.defjvp
@precise
def _svdvals_jvp(primals: Any, tangents: Any) -> Any:
    u, s, vh = _svd(*primals)
    return s, _diagonal(adjoint(u) @ tangents[0] @ adjoint(vh)).real


def svd(a: Any, full_matrices: bool = False) -> SVDResult:
    """A = U diag(S) Vh. a (..., m, n); U (..., m, k), S (..., k), Vh (..., k, n) with k = min(m, n); full_matrices:
    U (..., m, m), Vh (..., n, n), which have no derivative where m and n differ. A member with NaN or Inf has NaN in all
    results. See batchqr.svd()."""
    a = matrices(a, "a")
    full = _checks.flag("full_matrices", full_matrices) and a.shape[-2] != a.shape[-1]
    return SVDResult(*(_xla.full_svd(a) if full else _svd(a)))


def svdvals(a: Any) -> Any:
    """The singular values of a (..., m, n), descending: (..., min(m, n)). See svd()."""
    return _svdvals(matrices(a, "a"))


def _tolerance(a: Any, rtol: float | None) -> float:
    return max(a.shape[-2:]) * float(jnp.finfo(a.dtype).eps) if rtol is None else _checks.real("rtol", rtol)


def matrix_rank(a: Any, *, atol: float = 0, rtol: float | None = None) -> Any:
    """How many singular values of a (..., m, n) are above max(atol, rtol * the largest one): (...), int32; 0 for a member with
    NaN or Inf. rtol None: max(m, n) times the rounding of a's type."""
    a = matrices(a, "a")
    return _xla.svdvals(jax.lax.stop_gradient(a), _checks.real("atol", atol), _tolerance(a, rtol))[1]


def _pinv_by_svd(a: Any, rtol: float) -> Any:
    u, s, vh = _xla.svd(a)
    none = s <= rtol * s[..., :1]
    inverse = jnp.where(none, 0, 1 / jnp.where(none, 1, s)).astype(a.dtype)
    return (adjoint(vh) * inverse[..., None, :]) @ adjoint(u)


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def pseudoinverse(a: Any, rtol: float, method: str) -> Any:
    with precise:
        return _xla.pinv(a, rtol) if method == "qr" else _pinv_by_svd(a, rtol)


@pseudoinverse.defjvp
@precise
def _pinv_jvp(rtol: float, method: str, primals: Any, tangents: Any) -> Any:
    """Of constant rank: G. H. Golub, V. Pereyra, The differentiation of pseudo-inverses, SIAM J. Numer. Anal. 10, 1973."""
    (a,), (da,) = primals, tangents
    p = pseudoinverse(a, rtol, method)
    ph, dah = adjoint(p), adjoint(da)
    left, right = dah - (dah @ a) @ p, dah - p @ (a @ dah)
    return p, p @ (ph @ left) + (right @ ph) @ p - p @ da @ p


def pinv(a: Any, *, rtol: float | None = None, method: Literal["svd", "qr"] = "svd") -> Any:
    """The pseudoinverse of a (..., m, n): (..., n, m). Its derivatives are those at constant rank. See batchqr.pinv()."""
    _checks.choice("method", method, "svd", "qr")
    a = matrices(a, "a")
    return pseudoinverse(a, _tolerance(a, rtol), method)


def svd_lowrank(a: Any, q: int = 6, niter: int = 2, *, seed: int = 0, oversampling: int = 0) -> SVDLowrankResult:
    """The q largest singular values of a (..., m, n) and their vectors, by a random sketch; no derivative. See
    batchqr.svd_lowrank()."""
    a = matrices(a, "a")
    k, seed = min(_checks.integer("q", q), *a.shape[-2:]), _checks.integer("seed", seed, most=2**64 - 1)
    return SVDLowrankResult(*_xla.gesvdr(a, k, _checks.integer("oversampling", oversampling),
                                         _checks.integer("niter", niter), seed))


# --- eigenvalues

def _symmetric(a: Any, lower: bool) -> Any:
    """Of one triangle, the other one and a diagonal that is real."""
    a = matrices(a, "a")
    if a.shape[-2] != a.shape[-1]:
        raise ValueError(f"a of shape {a.shape}: the last two axes must be of one length")
    part = jnp.tril(a, -1) if _checks.flag("lower", lower) else jnp.triu(a, 1)
    return part + adjoint(part) + jnp.where(jnp.eye(a.shape[-1], dtype=bool), a.real, 0).astype(a.dtype)


@jax.custom_jvp
def _eigh(a: Any) -> Any:
    return _xla.syevd(a, True, True)


@_eigh.defjvp
@precise
def _eigh_jvp(primals: Any, tangents: Any) -> Any:
    """With P = V^H dA V: dw is P's diagonal, and dV = V (F o P), F_ij = 1 / (w_j - w_i)."""
    w, v = _eigh(*primals)
    p = adjoint(v) @ tangents[0] @ v
    return (w, v), (_diagonal(p).real, v @ (_quotients(w).astype(p.dtype) * p))


@jax.custom_jvp
def _eigvalsh(a: Any) -> Any:
    return _xla.syevd(a, True, False)[0]


@_eigvalsh.defjvp
@precise
def _eigvalsh_jvp(primals: Any, tangents: Any) -> Any:
    w, v = _eigh(*primals)
    return w, _diagonal(adjoint(v) @ tangents[0] @ v).real


def eigh(a: Any, *, lower: bool = True) -> EighResult:
    """A = V diag(w) V^H of a (..., n, n), of which one triangle is read; w (..., n), ascending, V (..., n, n). A member with NaN
    or Inf has NaN in both. See batchqr.eigh()."""
    return EighResult(*_eigh(_symmetric(a, lower)))


def eigvalsh(a: Any, *, lower: bool = True) -> Any:
    """The eigenvalues of a (..., n, n), ascending: (..., n). See eigh()."""
    return _eigvalsh(_symmetric(a, lower))


# --- QR with column pivoting

def qr_pivoted(a: Any, *, kmax: int | None = None, atol: float = 0, rtol: float = 0) -> PivotedQRResult:
    """A[..., P] = Q R with column pivoting, stopped at a rank; no derivative. See batchqr.qr_pivoted()."""
    atol, rtol = _checks.real("atol", atol), _checks.real("rtol", rtol)
    a, steps = matrices(a, "a"), most_steps(kmax)
    k = min(a.shape[-2:])
    factored, tau, order, rank = _xla.geqp3(a, steps, atol, rtol)
    r = jnp.triu(factored[..., :k, :])
    if kmax is not None or atol > 0 or rtol > 0:
        r = jnp.where(jnp.arange(k)[:, None] < rank[..., None, None], r, 0)
    q = _xla.orgqr(factored[..., :k], tau) if 0 not in a.shape else _xla.eye(a, a.shape[-2], k)
    return PivotedQRResult(q, r, order, rank)
