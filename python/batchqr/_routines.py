# SPDX-License-Identifier: BSD-3-Clause
"""The package's functions."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, cast, overload

from . import _arrays, _checks, _operations
from ._frameworks import Array, Framework, Jax, framework_of
from ._handles import Handle, handle_for


class QRResult(NamedTuple):
    """Q (..., m, k) and R (..., k, n)."""

    Q: Any
    R: Any


class GeqrfResult(NamedTuple):
    """R and V in `a` (..., m, n), as LAPACK's xGEQRF leaves them, and `tau` (..., min(m, n))."""

    a: Any
    tau: Any


class LstsqResult(NamedTuple):
    """x (..., n, k), the residuals' 2-norms (..., k) and info (...): 0, or why a member has no solution."""

    x: Any
    norms: Any
    info: Any


class LstsqRankResult(NamedTuple):
    """x (..., n, k), the residuals' 2-norms (..., k), info (...): 0, or why a member has no solution, and the ranks (...)."""

    x: Any
    norms: Any
    info: Any
    rank: Any


class LstsqIterationsResult(NamedTuple):
    """What LstsqResult holds, and of each column of b the iterations of the refinement (..., k), int32, and the
    backward error that it came to (..., k)."""

    x: Any
    norms: Any
    info: Any
    iterations: Any
    relres: Any


def _is_jax(*arrays: Any) -> bool:
    for x in arrays:
        if framework_of(x).__class__ is Jax:
            return True
    return False


def _same_framework(framework: Framework, *others: Any) -> None:
    for x in others:
        if x is not None and framework_of(x) is not framework:
            raise TypeError(f"an array of {framework_of(x).name} beside one of {framework.name}")


def only_plain(**options: Any) -> None:
    """JAX's arrays are never written to."""
    for name, value in options.items():
        if value:
            raise TypeError(f"{name}: not for JAX's arrays")


def _copied_out(framework: Framework, out: Array | None, made: Array) -> Array:
    """The caller's array, where he gave one that the library could not write to."""
    if out is None or out is made:
        return made
    framework.copy(out, made)
    return out


def _outputs(framework: Framework, out: Any, mode: str) -> tuple[Array | None, Array | None]:
    """Of Q and R."""
    if out is None or mode == "r":
        return None, out
    if framework.is_array(out) or not isinstance(out, Sequence) or len(out) != 2:
        raise TypeError("out: two arrays are needed, of Q and of R")
    if all(framework.is_array(x) for x in out) and _operations.overlap(framework, *out):
        raise ValueError("out: the arrays of Q and of R overlap")
    return out[0], out[1]


def complete_qr(framework: Framework, a: Array, info: Array | None, handle: Handle) -> QRResult:
    """Q (..., m, m) and R (..., m, n) of a with m > n."""
    *members, m, n = tuple(a.shape)
    q = framework.empty_matrices((*members, m, m), a)
    reflectors = q[..., :n]
    framework.copy(reflectors, a)
    tau = framework.empty((*members, n), a)
    _operations.geqrf(framework, reflectors, tau, info).run(handle)
    r = framework.by_columns(framework.triu(reflectors))
    _operations.orgqr(framework, q, tau, None).run(handle)
    return QRResult(q, r)


_prepared = _operations.PreparedCalls()


def qr(a: Any, mode: Literal["reduced", "complete", "r"] = "reduced", *, positive: bool = False,
       out: Any = None, overwrite: bool = False, info: Any = None, gram_schmidt: int = 0,
       handle: Handle | None = None) -> Any:
    """A = QR, Q with orthonormal columns, R with zeros below the diagonal.

    a          (..., m, n)
    mode       "reduced": Q (..., m, k) and R (..., k, n), k = min(m, n); "complete": Q (..., m, m) and R (..., m, n);
               "r": R (..., k, n) alone
    positive   R's diagonal is not negative
    out        arrays for the results: (Q, R), or R with mode "r"; that of Q may be a; not with "complete" and m > n
    overwrite  a may be used as work space: its contents are undefined afterwards
    info       (...), int32, out: 0; j > 0: R[j-1, j-1] is the first zero on the diagonal; -1: a member with NaN or Inf
    gram_schmidt  with a handle of compute="half": 1: Q may come from Gram-Schmidt in FP16 products, with an error of
               orthogonality like the condition number times 2^-11; 2: the same twice; see batch_qr()
    handle     instead of the one that calls without one share

    Returns QRResult(Q, R), or R with mode "r"."""
    _checks.choice("mode", mode, "reduced", "complete", "r")
    if _is_jax(a):
        from . import jax as with_jax
        only_plain(out=out is not None, info=info is not None, gram_schmidt=gram_schmidt != 0, handle=handle is not None)
        return with_jax.qr(a, mode, positive=positive)
    framework = framework_of(a)
    a = framework.asarray(a)
    key = None
    if out is None and info is None and handle is None and not overwrite and not gram_schmidt and (
            positive is False or positive is True):
        key = (framework, "qr", mode, positive, framework.key(a))
        known = _prepared.get(key)
        if known is not None:
            r = framework.empty_matrices(known.shapes["r"], a)
            q = None if mode == "r" else framework.empty_matrices(known.shapes["c"], a)
            known.run(framework, a, q, r)
            return r if mode == "r" else QRResult(q, r)
    *members, m, n = _operations.matrices(a, "a")
    framework.type(a)
    k = min(m, n)
    handle = handle_for(framework, a, positive, handle)
    info = _operations.check_info(framework, info, tuple(members), a)
    if mode == "complete" and m > n:
        if out is not None:
            raise ValueError("out: not with mode = 'complete'")
        return complete_qr(framework, a, info, handle)
    out_q, out_r = _outputs(framework, out, mode)
    keep = not (overwrite and framework.is_writable(a))
    r = _operations.writable(framework, out_r, (*members, k, n), a, "out of R")
    q = None if mode == "r" else _operations.writable(framework, out_q, (*members, m, k), a, "out of Q")
    problem = _operations.qr(framework, a, q, r, info, keep, gram_schmidt)
    problem.run(handle)
    if key is not None and problem.operands["a"] is a:
        _prepared.keep(key, problem, handle)
    if mode == "r":
        return _copied_out(framework, out_r, r)
    return QRResult(_copied_out(framework, out_q, q), _copied_out(framework, out_r, r))


def geqrf(a: Any, *, positive: bool = False, overwrite: bool = False, info: Any = None,
          handle: Handle | None = None) -> GeqrfResult:
    """A = QR, Q as Householder vectors: LAPACK's xGEQRF.

    a          (..., m, n)
    overwrite  the result may be in a, where a is stored by columns
    info       see qr()

    Returns GeqrfResult(a, tau): R on and above the diagonal of `a`, the vectors below it; stored by columns."""
    if _is_jax(a):
        from . import jax as with_jax
        only_plain(overwrite=overwrite, info=info is not None, handle=handle is not None)
        return with_jax.geqrf(a, positive=positive)
    framework = framework_of(a)
    a = framework.asarray(a)
    *members, m, n = _operations.matrices(a, "a")
    framework.type(a)
    handle = handle_for(framework, a, positive, handle)
    info = _operations.check_info(framework, info, tuple(members), a)
    a = _operations.stored_by_columns(framework, a, overwrite)
    tau = framework.empty((*members, min(m, n)), a)
    _operations.geqrf(framework, a, tau, info).run(handle)
    return GeqrfResult(a, tau)


def _reflectors(framework: Framework, a: Any, tau: Any) -> tuple[Array, Array]:
    _same_framework(framework, tau)
    a, tau = framework.asarray(a), framework.asarray(tau)
    *members, p, columns = _operations.matrices(a, "a")
    framework.type(a)
    _operations.check_type(framework, tau, a, "tau")
    if tuple(tau.shape[:-1]) != tuple(members) or not tau.ndim or tau.shape[-1] > min(p, columns):
        raise ValueError(f"tau of shape {tuple(tau.shape)} for a of shape {tuple(a.shape)}: the same leading axes, and "
                         "at most min(m, n) elements in the last one")
    return a, tau


def householder_product(a: Any, tau: Any, *, overwrite: bool = False, info: Any = None,
                        handle: Handle | None = None) -> Any:
    """The first n columns of Q = H_1 ... H_k: LAPACK's xORGQR, xUNGQR.

    a          (..., m, n), m >= n: vectors in the first k columns, as geqrf() returns them
    tau        (..., k), k <= n
    overwrite  the result may be in a, where a is stored by columns
    info       (...), int32, out: 0, or -1 for a member with NaN or Inf

    Returns Q (..., m, n), stored by columns."""
    if _is_jax(a, tau):
        from . import jax as with_jax
        only_plain(overwrite=overwrite, info=info is not None, handle=handle is not None)
        return with_jax.householder_product(a, tau)
    framework = framework_of(a)
    a, tau = _reflectors(framework, a, tau)
    if a.shape[-2] < a.shape[-1]:
        raise ValueError(f"a of shape {tuple(a.shape)}: Q has at most as many columns as rows")
    handle = handle_for(framework, a, False, handle)
    info = _operations.check_info(framework, info, tuple(a.shape[:-2]), a)
    a = _operations.stored_by_columns(framework, a, overwrite)
    _operations.orgqr(framework, a, tau, info).run(handle)
    return a


def ormqr(a: Any, tau: Any, c: Any, left: bool = True, transpose: bool = False, *, overwrite: bool = False,
          info: Any = None, handle: Handle | None = None) -> Any:
    """op(Q) C or C op(Q), Q = H_1 ... H_k: LAPACK's xORMQR, xUNMQR.

    a          (..., p, q), p = m (left) or n: vectors in the first k columns, as geqrf() returns them
    tau        (..., k), k <= min(p, q)
    c          (..., m, n); its leading axes and those of a are broadcast
    left       op(Q) C, else C op(Q)
    transpose  op(Q) is Q's conjugate transpose, else Q
    overwrite  the result may be in c, where c is stored by columns
    info       (...), int32, out: 0, or -1 for a member with NaN or Inf

    Returns an array (..., m, n), stored by columns."""
    if _is_jax(a, tau, c):
        from . import jax as with_jax
        only_plain(overwrite=overwrite, info=info is not None, handle=handle is not None)
        return with_jax.ormqr(a, tau, c, left, transpose)
    framework = framework_of(a)
    a, tau = _reflectors(framework, a, tau)
    _same_framework(framework, c)
    c = framework.asarray(c)
    m, n = _operations.matrices(c, "c")[-2:]
    _operations.check_type(framework, c, a, "c")
    if a.shape[-2] != (m if left else n):
        raise ValueError(f"a of shape {tuple(a.shape)} for c of shape {tuple(c.shape)}: Q has {m if left else n} rows")
    members = _arrays.broadcast(tuple(a.shape[:-2]), tuple(c.shape[:-2]))
    handle = handle_for(framework, c, False, handle)
    info = _operations.check_info(framework, info, members, a)
    a = framework.broadcast_to(a, (*members, *a.shape[-2:]))
    tau = framework.broadcast_to(tau, (*members, tau.shape[-1]))
    if tuple(c.shape[:-2]) != members:
        c = framework.broadcast_to(c, (*members, m, n))
        overwrite = False
    a = _operations.readable_by_columns(framework, a)
    c = _operations.stored_by_columns(framework, c, overwrite)
    _operations.ormqr(framework, a, tau, c, left, transpose, info).run(handle)
    return c


@overload
def lstsq(a: Any, b: Any, *, adjoint: bool = False, rcond: None = None, overwrite: bool = False,
          iterations: Literal[False] = False, handle: Handle | None = None) -> LstsqResult: ...


@overload
def lstsq(a: Any, b: Any, *, adjoint: bool = False, rcond: None = None, overwrite: bool = False,
          iterations: Literal[True], handle: Handle | None = None) -> LstsqIterationsResult: ...


@overload
def lstsq(a: Any, b: Any, *, adjoint: bool = False, rcond: float, overwrite: bool = False,
          iterations: Literal[False] = False, handle: Handle | None = None) -> LstsqRankResult: ...


def lstsq(a: Any, b: Any, *, adjoint: bool = False, rcond: float | None = None, overwrite: bool = False,
          iterations: bool = False, handle: Handle | None = None) -> LstsqResult | LstsqIterationsResult | LstsqRankResult:
    """The x that minimize ||B - op(A) x||, and of those the shortest ones.

    a          (..., m, n)
    b          (..., m, k), or (m,); (..., n, k) or (n,) with adjoint. The leading axes are broadcast.
    adjoint    op(A) is A's conjugate transpose, else A
    rcond      None: A is of full rank: LAPACK's xGELS, the fastest. Else of any rank: xGELSY, QR with column pivoting,
               where what remains of A counts as zero as soon as none of its columns is longer than rcond times the
               longest column of A; 0 stands for max(m, n) times the rounding of A's type, as NumPy's rcond=None
    overwrite  a may be used as work space: its contents are undefined afterwards
    iterations  also returns how x was found: large real members are solved by refinement on GPUs; without rcond

    Returns LstsqResult(x, norms, info), x (..., n, k) and norms (..., k), or (..., n) and (...) of a b of one axis,
    (..., m, k) or (..., m) with adjoint. With rcond, LstsqRankResult(x, norms, info, rank); with iterations,
    LstsqIterationsResult(x, norms, info, iterations, relres): steps of the refinement, 0 also where QR was taken at once,
    -1 - j where QR was taken after j steps in vain; and the backward error that they came to, -1 with QR. A member whose info is not 0
    has no solution: x is undefined. info is -1 where there are NaN or Inf, and j > 0 where rcond is None and R[j-1, j-1]
    is zero."""
    rcond = None if rcond is None else _checks.real("rcond", rcond)
    if _is_jax(a, b):
        from . import jax as with_jax
        only_plain(overwrite=overwrite, iterations=iterations, handle=handle is not None)
        return with_jax.lstsq(a, b, adjoint=adjoint, rcond=rcond)
    if iterations and rcond is not None:
        raise ValueError("iterations: not with rcond, with which there is no refinement")
    framework = framework_of(a)
    _same_framework(framework, b)
    a, b = framework.asarray(a), framework.asarray(b)
    key = None
    if rcond is None and handle is None and not overwrite and not iterations and b.ndim > 1:
        key = (framework, "gels", bool(adjoint), framework.key(a), framework.key(b))
        known = _prepared.get(key)
        if known is not None:
            c = framework.empty_matrices(known.shapes["c"], a)
            framework.copy(framework.first_rows(c, b.shape[-2]), b)
            norms = framework.empty_real(known.shapes["norms"], a)
            info = framework.empty_int32(known.shapes["info"], a)
            known.run(framework, a, c, None, info, norms)
            return LstsqResult(framework.first_rows(c, a.shape[-2 if adjoint else -1]), norms, info)
    *members_a, m, n = _operations.matrices(a, "a")
    framework.type(a)
    _operations.check_type(framework, b, a, "b")
    is_vector = b.ndim == 1
    if is_vector:
        b = b[:, None]
    *members_b, rows, k = _operations.matrices(b, "b")
    if rows != (n if adjoint else m):
        raise ValueError(f"b of shape {tuple(b.shape)} for a of shape {tuple(a.shape)}: {n if adjoint else m} rows are "
                         "needed")
    members = _arrays.broadcast(tuple(members_a), tuple(members_b))
    handle = handle_for(framework, a, False, handle)
    c = framework.empty_matrices((*members, max(m, n), k), a)
    b = framework.broadcast_to(b, (*members, rows, k))
    framework.copy(framework.first_rows(c, rows), b)
    info = framework.empty_int32(members, a)
    x = framework.first_rows(c, m if adjoint else n)
    if rcond is None:
        keep = not overwrite or not framework.is_writable(a) or tuple(members_a) != members
        a = framework.broadcast_to(a, (*members, m, n))
        norms = framework.empty_real((*members, k), a)
        steps, relres = None, None
        if iterations:
            steps, relres = framework.empty_int32((*members, k), a), framework.empty_real((*members, k), a)
        problem = _operations.gels(framework, a, c, adjoint, norms, info, keep, steps, relres)
        problem.run(handle)
        if key is not None and problem.operands["a"] is a and tuple(members_a) == members:
            _prepared.keep(key, problem, handle)
        if is_vector:
            x, norms = x[..., 0], norms[..., 0]
        if steps is None or relres is None:
            return LstsqResult(x, norms, info)
        if is_vector:
            steps, relres = steps[..., 0], relres[..., 0]
        return LstsqIterationsResult(x, norms, info, steps, relres)
    a = framework.broadcast_to(a, (*members, m, n))
    a = framework.adjoint(a) if adjoint else a
    rank = framework.empty_int32(members, a)
    _operations.gelsy(framework, framework.by_columns(a), c, rank, info, rcond).run(handle)
    norms = framework.norms_of_residuals(a, x, b)
    return LstsqRankResult(x[..., 0], norms[..., 0], info, rank) if is_vector else LstsqRankResult(x, norms, info, rank)


def qr_many(a: Iterable[Any], *, positive: bool = False, info: Any = None,
            handle: Handle | None = None) -> list[QRResult]:
    """Reduced QR of matrices of different sizes, all in one call.

    a      arrays (m_i, n_i) of one framework, type and device
    info   (len(a),), int32, out: see qr()

    Returns a list of QRResult(Q, R)."""
    a = list(a)
    if not a:
        return []
    if _is_jax(*a):
        raise TypeError("qr_many: not for JAX's arrays")
    framework = framework_of(a[0])
    _same_framework(framework, *a)
    arrays = [framework.asarray(x) for x in a]
    like = arrays[0]
    framework.type(like)
    for i, x in enumerate(arrays):
        if len(_operations.matrices(x, f"a[{i}]")) != 2:
            raise ValueError(f"a[{i}] of shape {tuple(x.shape)}: one matrix is needed")
        _operations.check_type(framework, x, like, f"a[{i}]")
    handle = handle_for(framework, like, positive, handle)
    info = _operations.check_info(framework, info, (len(arrays),), like)
    arrays = [_operations.readable_by_columns(framework, x) for x in arrays]
    ranks = [min(cast(tuple[int, int], tuple(x.shape))) for x in arrays]
    q = [framework.empty_matrices((x.shape[0], k), like) for x, k in zip(arrays, ranks)]
    r = [framework.empty_matrices((k, x.shape[1]), like) for x, k in zip(arrays, ranks)]
    problem, owners = _operations.qr_of_sizes(framework, like, arrays, q, r, info)
    problem.run(handle)
    del owners
    return [QRResult(*pair) for pair in zip(q, r)]
