# SPDX-License-Identifier: BSD-3-Clause
"""The package's functions for rank, singular values and eigenvalues."""
from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from . import _checks, _operations
from ._frameworks import Array, Framework, Jax, framework_of
from ._handles import Handle, handle_for
from ._operations import Problem
from ._routines import complete_qr, only_plain


class SVDResult(NamedTuple):
    """U (..., m, k), S (..., k), descending, and Vh (..., k, n), k = min(m, n), or U (..., m, m) and Vh (..., n, n)."""

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


def is_jax(a: Any, info: Any, handle: Handle | None, overwrite: bool = False) -> bool:
    """Whether batchqr.jax has the function for this array."""
    if not isinstance(framework_of(a), Jax):
        return False
    only_plain(info=info is not None, handle=handle is not None, overwrite=overwrite)
    return True


class _Call:
    """What all functions do first: the framework, the array and its sizes, the handle and info."""

    def __init__(self, a: Any, info: Any, handle: Handle | None) -> None:
        self.framework: Framework = framework_of(a)
        self.a: Array = self.framework.asarray(a)
        *members, self.m, self.n = _operations.matrices(self.a, "a")
        self.members = tuple(members)
        self.k = min(self.m, self.n)
        self.framework.type(self.a)
        self.handle = handle_for(self.framework, self.a, False, handle)
        self.info = _operations.check_info(self.framework, info, self.members, self.a)

    def run(self, problem: Problem) -> None:
        problem.run(self.handle)

    def work_space(self, overwrite: bool) -> Array:
        """a, or a copy of it, stored by columns."""
        return _operations.stored_by_columns(self.framework, self.a, overwrite)

    def eps(self) -> float:
        return float(np.finfo(str(self.a.dtype).removeprefix("torch.")).eps)


def _tolerance(call: _Call, rtol: float | None) -> float:
    return max(call.m, call.n) * call.eps() if rtol is None else _checks.real("rtol", rtol)


def _decompose(call: _Call, overwrite: bool) -> tuple[Array, Array, Array]:
    """U, s and V of a member with rows and columns."""
    framework, a = call.framework, call.work_space(overwrite)
    s = framework.empty_real((*call.members, call.k), a)
    u = framework.empty_matrices((*call.members, call.m, call.k), a)
    v = framework.empty_matrices((*call.members, call.n, call.k), a)
    call.run(_operations.gesvd(framework, a, s, u, v, None, call.info, 0, 0))
    return u, s, v


def _completed(framework: Framework, q: Array, handle: Handle) -> Array:
    """With orthonormal columns behind those of q, as many as it has rows."""
    *_, m, k = tuple(q.shape)
    if m == k:
        return q
    whole = complete_qr(framework, q, None, handle).Q
    framework.copy(whole[..., :k], q)
    return whole


def svd(a: Any, full_matrices: bool = False, *, overwrite: bool = False, info: Any = None,
        handle: Handle | None = None) -> SVDResult:
    """A = U diag(S) Vh: U and Vh^H have orthonormal columns.

    a              (..., m, n)
    full_matrices  U (..., m, m) and Vh (..., n, n), else thin: U (..., m, k) and Vh (..., k, n), k = min(m, n)
    overwrite      a may be used as work space: its contents are undefined afterwards
    info           (...), int32, out: 0; j > 0: no convergence; -1: a member with NaN or Inf, whose S are NaN
    handle         instead of the one that calls without one share

    Small singular values are accurate relative to themselves where A's columns (rows, if it is wide) are a
    well-conditioned matrix's, scaled. In each of the first k columns of V the first of the entries of largest magnitude
    is real and positive.

    Returns SVDResult(U, S, Vh), S (..., k), descending."""
    if is_jax(a, info, handle, overwrite):
        from . import jax as with_jax
        return with_jax.svd(a, full_matrices)
    _checks.flag("full_matrices", full_matrices)
    call = _Call(a, info, handle)
    framework = call.framework
    u, s, v = _decompose(call, overwrite)
    if full_matrices:
        u, v = _completed(framework, u, call.handle), _completed(framework, v, call.handle)
    return SVDResult(u, s, framework.adjoint(v))


def _values(call: _Call, overwrite: bool, rank: Array | None, abstol: float, reltol: float) -> Array:
    framework, a = call.framework, call.work_space(overwrite)
    s = framework.empty_real((*call.members, call.k), a)
    call.run(_operations.gesvd(framework, a, s, None, None, rank, call.info, abstol, reltol))
    return s


def svdvals(a: Any, *, overwrite: bool = False, info: Any = None, handle: Handle | None = None) -> Any:
    """The singular values of A (..., m, n), descending: an array (..., min(m, n)). See svd()."""
    if is_jax(a, info, handle, overwrite):
        from . import jax as with_jax
        return with_jax.svdvals(a)
    call = _Call(a, info, handle)
    return _values(call, overwrite, None, 0, 0)


def matrix_rank(a: Any, *, atol: float = 0, rtol: float | None = None, overwrite: bool = False, info: Any = None,
                handle: Handle | None = None) -> Any:
    """How many singular values are above max(atol, rtol * the largest one).

    a     (..., m, n)
    atol  not negative
    rtol  not negative; None: max(m, n) times the rounding of A's type

    Returns an array (...), int32; 0 for a member with NaN or Inf. See svd()."""
    if is_jax(a, info, handle, overwrite):
        from . import jax as with_jax
        return with_jax.matrix_rank(a, atol=atol, rtol=rtol)
    call = _Call(a, info, handle)
    rank = call.framework.empty_int32(call.members, call.a)
    _values(call, overwrite, rank, _checks.real("atol", atol), _tolerance(call, rtol))
    return rank


def pinv(a: Any, *, rtol: float | None = None, method: Literal["svd", "qr"] = "svd", overwrite: bool = False,
         info: Any = None, handle: Handle | None = None) -> Any:
    """The pseudoinverse of A (..., m, n), an array (..., n, m).

    rtol    what counts as zero; None: max(m, n) times the rounding of A's type
    method  "svd": singular values up to rtol times the largest one count as zero, as in numpy.linalg.pinv(). "qr": by QR
            with column pivoting, which is faster: what remains of A counts as zero as soon as none of its columns is
            longer than rtol times the longest column of A
    info    (...), int32, out: 0; j > 0: no convergence; -1: a member with NaN or Inf, whose result is NaN

    Of matrices of full rank lstsq() makes the product with one of few columns faster and more accurately. See svd()."""
    _checks.choice("method", method, "svd", "qr")
    if is_jax(a, info, handle, overwrite):
        from . import jax as with_jax
        return with_jax.pinv(a, rtol=rtol, method=method)
    call = _Call(a, info, handle)
    framework, tolerance = call.framework, _tolerance(call, rtol)
    if method == "qr":
        inverse = framework.empty_matrices((*call.members, call.n, call.m), call.a)
        call.run(_operations.pinv(framework, call.work_space(overwrite), inverse, call.info, tolerance))
        return inverse
    if call.k == 0:
        return framework.zeros((*call.members, call.n, call.m), call.a)
    u, s, v = _decompose(call, overwrite)
    inverse = framework.inverted(s, s[..., :1] * tolerance)
    return (v * inverse[..., None, :]) @ framework.adjoint(u)


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
    if is_jax(a, info, handle):
        from . import jax as with_jax
        return with_jax.svd_lowrank(a, q, niter, seed=seed, oversampling=oversampling)
    call = _Call(a, info, handle)
    framework, k = call.framework, min(_checks.integer("q", q), call.k)
    niter, oversampling = _checks.integer("niter", niter), _checks.integer("oversampling", oversampling)
    seed = _checks.integer("seed", seed, most=2**64 - 1)
    a = _operations.readable_by_columns(framework, call.a)
    s = framework.empty_real((*call.members, k), a)
    u = framework.empty_matrices((*call.members, call.m, k), a)
    v = framework.empty_matrices((*call.members, call.n, k), a)
    call.run(_operations.gesvdr(framework, a, s, u, v, call.info, oversampling, niter, seed))
    return SVDLowrankResult(u, s, v)


def _symmetric(a: Any, info: Any, handle: Handle | None) -> _Call:
    call = _Call(a, info, handle)
    if call.m != call.n:
        raise ValueError(f"a of shape {tuple(call.a.shape)}: the last two axes must be of one length")
    return call


def _subset(n: int, by_index: Any, by_value: Any) -> tuple[_operations.Range, int]:
    """The part of the spectrum that is wanted, and how many eigenvalues there may be."""
    if by_index is not None and by_value is not None:
        raise ValueError("subset_by_index and subset_by_value are both given")
    for name, bounds in (("subset_by_index", by_index), ("subset_by_value", by_value)):
        if bounds is not None and np.shape(bounds) != (2,):
            raise TypeError(f"{name} = {bounds}: two bounds are needed")
    if by_index is not None:
        first, last = (_checks.integer("subset_by_index", bound) for bound in by_index)
        if first > last or last >= n:
            raise ValueError(f"subset_by_index = {by_index}: 0 <= first <= last < {n} must hold")
        return (first + 1, last + 1, 0, 0), last - first + 1
    if by_value is not None:
        low, high = map(float, by_value)
        if not low < high:
            raise ValueError(f"subset_by_value = {by_value}: the first must be less than the second")
        return (0, 0, low, high), n
    return _operations.ALL, n


def eigh(a: Any, *, lower: bool = True, subset_by_index: Any = None, subset_by_value: Any = None,
         overwrite: bool = False, info: Any = None, handle: Handle | None = None) -> EighResult:
    """A = V diag(w) V^H of symmetric or Hermitian matrices.

    a                (..., n, n); only one triangle of it is read
    lower            which one
    subset_by_index  (first, last): these eigenvalues, counted from 0, and those between them alone
    subset_by_value  (low, high): eigenvalues w with low < w <= high alone, come first; behind them w is filled up with
                     NaN, and eigenvectors may hold anything. Bounds may be infinite
    overwrite        the eigenvectors may be in a, where a is stored by columns
    info             (...), int32, out: 0; j > 0: no convergence; -1: a member with NaN or Inf, whose w are NaN

    The subsets are scipy.linalg.eigh()'s, the same for all members; arrays of JAX have none.

    Returns EighResult(eigenvalues, eigenvectors)."""
    if is_jax(a, info, handle, overwrite):
        from . import jax as with_jax
        only_plain(subset_by_index=subset_by_index is not None, subset_by_value=subset_by_value is not None)
        return with_jax.eigh(a, lower=lower)
    call = _symmetric(a, info, handle)
    part, count = _subset(call.n, subset_by_index, subset_by_value)
    framework, v = call.framework, call.work_space(overwrite)
    w = framework.empty_real((*call.members, count), v)
    call.run(_operations.syevd(framework, v, w, v, call.info, _checks.flag("lower", lower), part))
    return EighResult(w, v if count == call.n else v[..., :count])


def eigvalsh(a: Any, *, lower: bool = True, subset_by_index: Any = None, subset_by_value: Any = None,
             overwrite: bool = False, info: Any = None, handle: Handle | None = None) -> Any:
    """The eigenvalues of symmetric or Hermitian matrices (..., n, n), ascending: an array (..., n). See eigh()."""
    if is_jax(a, info, handle, overwrite):
        from . import jax as with_jax
        only_plain(subset_by_index=subset_by_index is not None, subset_by_value=subset_by_value is not None)
        return with_jax.eigvalsh(a, lower=lower)
    call = _symmetric(a, info, handle)
    part, count = _subset(call.n, subset_by_index, subset_by_value)
    a = call.work_space(overwrite)
    w = call.framework.empty_real((*call.members, count), a)
    call.run(_operations.syevd(call.framework, a, w, None, call.info, _checks.flag("lower", lower), part))
    return w


def most_steps(kmax: int | None) -> int:
    """0 stands for min(m, n)."""
    return 0 if kmax is None else min(_checks.integer("kmax", kmax, 1, 2**63), 2**31 - 1)


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
    atol, rtol = _checks.real("atol", atol), _checks.real("rtol", rtol)
    if is_jax(a, info, handle, overwrite):
        from . import jax as with_jax
        return with_jax.qr_pivoted(a, kmax=kmax, atol=atol, rtol=rtol)
    steps = most_steps(kmax)
    call = _Call(a, info, handle)
    framework, k = call.framework, call.k
    a = call.work_space(overwrite)
    tau = framework.empty((*call.members, k), a)
    jpvt, rank = framework.empty_int32((*call.members, call.n), a), framework.empty_int32(call.members, a)
    call.run(_operations.geqp3(framework, a, tau, jpvt, rank, call.info, steps, atol, rtol))
    r = framework.triu(a[..., :k, :])
    if kmax is not None or atol > 0 or rtol > 0:
        r = framework.rows_before(r, rank)
    q = framework.by_columns(a[..., :, :k])
    call.run(_operations.orgqr(framework, q, tau, None))
    return PivotedQRResult(q, r, jpvt, rank)
