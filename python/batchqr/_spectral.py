# SPDX-License-Identifier: BSD-3-Clause
"""The package's functions for rank, singular values and eigenvalues."""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import _operations
from ._frameworks import Array, Framework, Jax, framework_of
from ._handles import Handle, handle_for
from ._operations import Problem


class SVDResult(NamedTuple):
    """U (..., m, k), S (..., k), descending, and Vh (..., k, n), k = min(m, n)."""

    U: Any
    S: Any
    Vh: Any


class SVDLowrankResult(NamedTuple):
    """U (..., m, q), S (..., q), descending, and V (..., n, q)."""

    U: Any
    S: Any
    V: Any


class EighResult(NamedTuple):
    """eigenvalues (..., n), ascending, and eigenvectors (..., n, n), in columns."""

    eigenvalues: Any
    eigenvectors: Any


class PivotedQRResult(NamedTuple):
    """Q (..., m, k), R (..., k, n), P (..., n), int32, and rank (...), int32, k = min(m, n)."""

    Q: Any
    R: Any
    P: Any
    rank: Any


class _Call:
    """What all functions do first: the framework, the array and its sizes, the handle and info."""

    def __init__(self, a: Any, info: Any, handle: Handle | None) -> None:
        self.is_jax = isinstance(framework_of(a), Jax)
        if self.is_jax:
            from . import jax as with_jax
            if info is not None or handle is not None:
                raise TypeError("info, handle: not for JAX's arrays")
            a = with_jax.read(a)
        self.framework: Framework = framework_of(a)
        self.a: Array = self.framework.asarray(a)
        *members, self.m, self.n = _operations.matrices(self.a, "a")
        self.members = tuple(members)
        self.k = min(self.m, self.n)
        self.framework.type(self.a)
        self.handle = handle_for(self.framework, self.a, False, handle)
        self.info = _operations.check_info(self.framework, info, self.members)

    def run(self, problem: Problem) -> None:
        problem.run(self.handle)

    def work_space(self, overwrite: bool) -> Array:
        """a, or a copy of it, stored by columns."""
        return _operations.stored_by_columns(self.framework, self.a, overwrite and not self.is_jax)

    def returned(self, *results: Any) -> Any:
        """In the caller's framework."""
        if self.is_jax:
            from . import jax as with_jax
            results = tuple(with_jax.given_back(x) for x in results)
        return results[0] if len(results) == 1 else results

    def eps(self) -> float:
        return float(np.finfo(str(self.a.dtype).removeprefix("torch.")).eps)


def _tolerance(call: _Call, rtol: float | None) -> float:
    return max(call.m, call.n) * call.eps() if rtol is None else rtol


def _check_tolerances(**tolerances: float | None) -> None:
    for name, value in tolerances.items():
        if value is not None and not 0 <= value < math.inf:
            raise ValueError(f"{name} = {value}: a number that is not negative")


def _decompose(call: _Call, overwrite: bool) -> tuple[Array, Array, Array]:
    """U, s and V of a member with rows and columns."""
    framework, a = call.framework, call.work_space(overwrite)
    s = framework.empty_real((*call.members, call.k), a)
    u = framework.empty_matrices((*call.members, call.m, call.k), a)
    v = framework.empty_matrices((*call.members, call.n, call.k), a)
    call.run(_operations.gesvd(framework, a, s, u, v, None, call.info, 0, 0))
    return u, s, v


def svd(a: Any, *, overwrite: bool = False, info: Any = None, handle: Handle | None = None) -> SVDResult:
    """A = U diag(S) Vh, thin: U and Vh^H have orthonormal columns.

    a          (..., m, n)
    overwrite  a may be used as work space: its contents are undefined afterwards
    info       (...), int32, out: 0; j > 0: no convergence; -1: a member with NaN or Inf, whose S are NaN
    handle     instead of the one that calls without one share

    Small singular values are accurate relative to themselves where A's columns (rows, if it is wide) are a
    well-conditioned matrix's, scaled. In each column of V the first of the entries of largest magnitude is real and
    positive.

    Returns SVDResult(U, S, Vh)."""
    call = _Call(a, info, handle)
    u, s, v = _decompose(call, overwrite)
    return SVDResult(*call.returned(u, s, call.framework.adjoint(v)))


def _values(call: _Call, overwrite: bool, rank: Array | None, abstol: float, reltol: float) -> Array:
    framework, a = call.framework, call.work_space(overwrite)
    s = framework.empty_real((*call.members, call.k), a)
    call.run(_operations.gesvd(framework, a, s, None, None, rank, call.info, abstol, reltol))
    return s


def svdvals(a: Any, *, overwrite: bool = False, info: Any = None, handle: Handle | None = None) -> Any:
    """The singular values of A (..., m, n), descending: an array (..., min(m, n)). See svd()."""
    call = _Call(a, info, handle)
    return call.returned(_values(call, overwrite, None, 0, 0))


def matrix_rank(a: Any, *, atol: float = 0, rtol: float | None = None, overwrite: bool = False, info: Any = None,
                handle: Handle | None = None) -> Any:
    """How many singular values are above max(atol, rtol * the largest one).

    a     (..., m, n)
    atol  not negative
    rtol  not negative; None: max(m, n) times the rounding of A's type

    Returns an array (...), int32; 0 for a member with NaN or Inf. See svd()."""
    _check_tolerances(atol=atol, rtol=rtol)
    call = _Call(a, info, handle)
    rank = call.framework.empty_int32(call.members, call.a)
    _values(call, overwrite, rank, atol, _tolerance(call, rtol))
    return call.returned(rank)


def pinv(a: Any, *, rtol: float | None = None, overwrite: bool = False, info: Any = None,
         handle: Handle | None = None) -> Any:
    """The pseudoinverse of A (..., m, n), an array (..., n, m).

    rtol  singular values up to rtol times the largest one count as zero; None: max(m, n) times the rounding of A's type

    Of matrices of full rank lstsq() makes the product with one of few columns faster and more accurately. See svd()."""
    _check_tolerances(rtol=rtol)
    call = _Call(a, info, handle)
    framework = call.framework
    if call.k == 0:
        return call.returned(framework.zeros((*call.members, call.n, call.m), call.a))
    u, s, v = _decompose(call, overwrite)
    inverse = framework.inverted(s, s[..., :1] * _tolerance(call, rtol))
    return call.returned((v * inverse[..., None, :]) @ framework.adjoint(u))


def svd_lowrank(a: Any, q: int = 6, niter: int = 2, *, seed: int = 0, oversampling: int = 0, info: Any = None,
                handle: Handle | None = None) -> SVDLowrankResult:
    """The q largest singular values and their vectors, by a random sketch: near the true ones where singular values
    fall off.

    a             (..., m, n)
    q             at least 0; min(m, n) where it is more
    niter         power steps, each of which reads A twice
    seed          the same one gives the same bits
    oversampling  columns of the sketch beyond q
    info, handle  see svd()

    Returns SVDLowrankResult(U, S, V)."""
    for name, value in (("q", q), ("niter", niter), ("seed", seed), ("oversampling", oversampling)):
        if value < 0:
            raise ValueError(f"{name} = {value}: a number that is not negative")
    call = _Call(a, info, handle)
    framework, k = call.framework, min(q, call.k)
    a = _operations.readable_by_columns(framework, call.a)
    s = framework.empty_real((*call.members, k), a)
    u = framework.empty_matrices((*call.members, call.m, k), a)
    v = framework.empty_matrices((*call.members, call.n, k), a)
    call.run(_operations.gesvdr(framework, a, s, u, v, call.info, oversampling, niter, seed))
    return SVDLowrankResult(*call.returned(u, s, v))


def _symmetric(a: Any, info: Any, handle: Handle | None) -> _Call:
    call = _Call(a, info, handle)
    if call.m != call.n:
        raise ValueError(f"a of shape {tuple(call.a.shape)}: the last two axes must be of one length")
    return call


def eigh(a: Any, *, lower: bool = True, overwrite: bool = False, info: Any = None,
         handle: Handle | None = None) -> EighResult:
    """A = V diag(w) V^H of symmetric or Hermitian matrices.

    a          (..., n, n); only one triangle of it is read
    lower      which one
    overwrite  the eigenvectors may be in a, where a is stored by columns
    info       (...), int32, out: 0; j > 0: no convergence; -1: a member with NaN or Inf, whose w are NaN

    Returns EighResult(eigenvalues, eigenvectors)."""
    call = _symmetric(a, info, handle)
    framework, v = call.framework, call.work_space(overwrite)
    w = framework.empty_real((*call.members, call.n), v)
    call.run(_operations.syevd(framework, v, w, v, call.info, lower))
    return EighResult(*call.returned(w, v))


def eigvalsh(a: Any, *, lower: bool = True, overwrite: bool = False, info: Any = None,
             handle: Handle | None = None) -> Any:
    """The eigenvalues of symmetric or Hermitian matrices (..., n, n), ascending: an array (..., n). See eigh()."""
    call = _symmetric(a, info, handle)
    a = call.work_space(overwrite)
    w = call.framework.empty_real((*call.members, call.n), a)
    call.run(_operations.syevd(call.framework, a, w, None, call.info, lower))
    return call.returned(w)


def qr_pivoted(a: Any, *, kmax: int | None = None, atol: float = 0, rtol: float = 0, overwrite: bool = False,
               info: Any = None, handle: Handle | None = None) -> PivotedQRResult:
    """A[..., P] = Q R with column pivoting, stopped at a rank: LAPACK's xGEQP3 and xGEQP3RK.

    a     (..., m, n)
    kmax  the largest rank; None: min(m, n)
    atol  not negative; the steps end where no remaining column is longer than this,
    rtol  or than rtol times the longest column of A
    info  (...), int32, out: 0, or -1 for a member with NaN or Inf

    Returns PivotedQRResult(Q, R, P, rank). Behind the first `rank` columns Q has more orthonormal ones, and behind its
    first `rank` rows R is zero: Q R is then A[..., P] but for what is within the tolerances."""
    _check_tolerances(atol=atol, rtol=rtol)
    if kmax is not None and kmax < 1:
        raise ValueError(f"kmax = {kmax}: a number above 0")
    call = _Call(a, info, handle)
    framework, k = call.framework, call.k
    a = call.work_space(overwrite)
    tau = framework.empty((*call.members, k), a)
    jpvt, rank = framework.empty_int32((*call.members, call.n), a), framework.empty_int32(call.members, a)
    call.run(_operations.geqp3(framework, a, tau, jpvt, rank, call.info, kmax or 0, atol, rtol))
    r = framework.triu(a[..., :k, :])
    if kmax is not None or atol > 0 or rtol > 0:
        r = framework.rows_before(r, rank)
    q = framework.by_columns(a[..., :, :k])
    call.run(_operations.orgqr(framework, q, tau, None))
    return PivotedQRResult(*call.returned(q, r, jpvt, rank))
