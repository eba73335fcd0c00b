# SPDX-License-Identifier: BSD-3-Clause
"""batchqr for JAX: functions that XLA calls, on CPUs and GPUs, inside jit, vmap, grad and shard_map as well as outside.
Leading axes are batch axes, those of vmap among them: a batch is one call. Derivatives are of any order.

install() puts them in the place of jax.numpy.linalg.qr's own."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from . import _routines
from ._routines import GeqrfResult, LstsqResult, QRResult

try:
    from . import _jax
except ImportError:  # built where JAX's headers were not
    _jax = None  # type: ignore[assignment]
else:
    for _name, (_host, _cuda) in _jax.handlers().items():
        jax.ffi.register_ffi_target(_name, _host, platform="cpu")
        jax.ffi.register_ffi_target(_name, _cuda, platform="CUDA")


# --- routines that XLA does not call: on arrays in host memory, not traced

def read(x: Any) -> Any:
    if isinstance(x, jax.core.Tracer):
        raise TypeError("an array that JAX traces: call this function of batchqr outside of jit, vmap and grad")
    if isinstance(x, jax.Array) and any(device.platform != "cpu" for device in x.devices()):
        raise TypeError("an array of JAX in device memory: this function of batchqr takes those in host memory alone")
    return np.asarray(x)


def given_back(x: Any) -> Any:
    return jax.tree.map(jnp.array, x)


# --- calls

def _call(name: str, results: Any, *operands: Any, aliases: dict[int, int], by_columns: tuple[int, ...] = (),
          **attributes: Any) -> Any:
    """results: shapes and types. aliases: operands that become results; these matrices are stored by columns, and the
    results `by_columns`; others by rows."""
    if _jax is None:
        raise RuntimeError("this build of batchqr is without JAX's headers: install it where jaxlib is installed")

    def layouts(arrays: Any, turned: Any) -> list[tuple[int, ...]]:
        axes = [tuple(range(len(x.shape))) for x in arrays]
        return [(*x[:-2], x[-1], x[-2]) if i in turned else x for i, x in enumerate(axes)]

    return jax.ffi.ffi_call(name, results, vmap_method="broadcast_all", input_output_aliases=aliases,
                            input_layouts=layouts(operands, aliases.keys()),
                            output_layouts=layouts(results, (*aliases.values(), *by_columns)))(*operands, **attributes)


def _like(x: Any, *shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, x.dtype)


def _numbers(x: Any) -> Any:
    """An array of a type that the library has."""
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(jnp.promote_types(x.dtype, jnp.float32))


def _matrices(x: Any, name: str) -> Any:
    x = _numbers(x)
    if x.ndim < 2:
        raise ValueError(f"{name} of shape {x.shape}: the last two axes are a matrix's, so there must be two at least")
    if x.dtype not in (jnp.float32, jnp.float64, jnp.complex64, jnp.complex128):
        raise TypeError(f"{name} is of type {x.dtype}: float32, float64, complex64 or complex128")
    return x


def _adjoint(x: Any) -> Any:
    return x.swapaxes(-1, -2).conj()


def _eye(x: Any, m: int, k: int) -> Any:
    return jnp.broadcast_to(jnp.eye(m, k, dtype=x.dtype), (*x.shape[:-2], m, k))


def _qr_call(a: Any, positive: bool) -> Any:
    *members, m, n = a.shape
    k = min(m, n)
    if 0 in a.shape:
        return _eye(a, m, k), jnp.zeros((*members, k, n), a.dtype)
    return _call("batchqr_qr", (_like(a, *members, m, k), _like(a, *members, k, n)), a, aliases={},
                 by_columns=(0, 1), positive=positive)


def _geqrf_call(a: Any, positive: bool) -> Any:
    *members, m, n = a.shape
    if 0 in a.shape:
        return a, jnp.zeros((*members, min(m, n)), a.dtype)
    return _call("batchqr_geqrf", (_like(a, *a.shape), _like(a, *members, min(m, n))), a, aliases={0: 0},
                 positive=positive)


def _orgqr_call(a: Any, tau: Any) -> Any:
    if 0 in a.shape:
        return a
    return _call("batchqr_orgqr", (_like(a, *a.shape),), a, tau, aliases={0: 0})[0]


# --- QR, and its derivative

@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _qr(a: Any, positive: bool) -> Any:
    return _qr_call(a, positive)


@_qr.defjvp
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
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"mode = {mode!r}: one of reduced, complete, r")
    a = _matrices(a, "a")
    *members, m, n = a.shape
    if mode == "complete" and m > n:
        factored, tau = _geqrf_call(a, positive)
        wide = jnp.pad(factored, [(0, 0)] * (a.ndim - 1) + [(0, m - n)])
        return QRResult(_orgqr_call(wide, tau) if n else _eye(a, m, m), jnp.triu(factored))
    q, r = _qr(a, positive)
    return r if mode == "r" else QRResult(q, r)


def geqrf(a: Any, *, positive: bool = False) -> GeqrfResult:
    """A = QR in LAPACK's format: a (..., m, n) becomes R and the reflectors' vectors, tau is (..., min(m, n))."""
    return GeqrfResult(*_geqrf_call(_matrices(a, "a"), positive))


def householder_product(a: Any, tau: Any) -> Any:
    """Q of geqrf()'s result, (..., m, n) with m >= n; tau (..., k), k <= n."""
    a, tau = _matrices(a, "a"), _numbers(tau)
    if tau.ndim != a.ndim - 1 or tau.shape[:-1] != a.shape[:-2] or tau.shape[-1] > min(a.shape[-2:]):
        raise ValueError(f"tau of shape {tau.shape} for a of shape {a.shape}: the same leading axes, and at most min(m, n) "
                         "elements in the last one")
    if tau.dtype != a.dtype:
        raise TypeError(f"tau is of type {tau.dtype}, the matrices of type {a.dtype}")
    return _orgqr_call(a, tau)


def ormqr(a: Any, tau: Any, c: Any, left: bool = True, transpose: bool = False) -> Any:
    """See batchqr.ormqr(); of arrays in host memory, not traced."""
    return given_back(_routines.ormqr(read(a), read(tau), read(c), left, transpose))


# --- least squares

def _gels_call(a: Any, b: Any, adjoint: bool) -> Any:
    *members, m, n = a.shape
    rows, unknowns = (n, m) if adjoint else (m, n)
    count = b.shape[-1]
    real = jnp.finfo(a.dtype).dtype
    if 0 in a.shape or count == 0:
        return jnp.zeros((*members, unknowns, count), a.dtype), jnp.linalg.norm(b, axis=-2), jnp.zeros(members, jnp.int32)
    c = jnp.pad(b, [(0, 0)] * (b.ndim - 2) + [(0, max(m, n) - rows), (0, 0)])
    c, norms, info = _call(
        "batchqr_gels",
        (_like(c, *c.shape), jax.ShapeDtypeStruct((*members, count), real), jax.ShapeDtypeStruct(tuple(members), np.int32)),
        a, c, aliases={1: 0}, adjoint=adjoint)
    return c[..., :unknowns, :], norms, info


def _solve(r: Any, b: Any, adjoint: bool) -> Any:
    return jax.lax.linalg.triangular_solve(r, b, left_side=True, lower=False, transpose_a=adjoint, conjugate_a=adjoint)


def _lstsq_by_qr(a: Any, b: Any) -> Any:
    """X and the residuals' norms, of what can be differentiated."""
    m, n = a.shape[-2:]
    if m < n:
        q, r = _qr(_adjoint(a), False)
        return q @ _solve(r, b, True), jnp.zeros((*b.shape[:-2], b.shape[-1]), b.real.dtype)
    q, r = _qr(a, False)
    x = _solve(r, _adjoint(q) @ b, False)
    squares = jnp.sum(jnp.abs(b - a @ x) ** 2, axis=-2)
    return x, jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _lstsq(a: Any, b: Any, adjoint: bool) -> Any:
    return _gels_call(a, b, adjoint)


@_lstsq.defjvp
def _lstsq_jvp(adjoint: bool, primals: Any, tangents: Any) -> Any:
    x, norms, info = _lstsq(*primals, adjoint)
    _, (dx, dnorms) = jax.jvp(lambda a, b: _lstsq_by_qr(_adjoint(a) if adjoint else a, b), primals, tangents)
    return (x, norms, info), (dx, dnorms, np.zeros(info.shape, jax.dtypes.float0))


def lstsq(a: Any, b: Any, *, adjoint: bool = False) -> LstsqResult:
    """X that minimizes ||A X - B||, or of least norm where A is wide; adjoint: A^H instead of A, which is of full rank.
    a (..., m, n), b (..., rows, k) or (..., rows); see batchqr.lstsq()."""
    a, b = _matrices(a, "a"), _numbers(b)
    vector = b.ndim == a.ndim - 1
    b = b[..., None] if vector else b
    rows = a.shape[-1 if adjoint else -2]
    if b.ndim != a.ndim or b.shape[:-1] != (*a.shape[:-2], rows):
        raise ValueError(f"b of shape {b.shape[:-1] if vector else b.shape} for a of shape {a.shape}: the same leading axes, and "
                         f"{rows} rows")
    if a.dtype != b.dtype:
        raise TypeError(f"b is of type {b.dtype}, the matrices of type {a.dtype}")
    x, norms, info = _lstsq(a, b, adjoint)
    return LstsqResult(x[..., 0], norms[..., 0], info) if vector else LstsqResult(x, norms, info)


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


def install() -> None:
    """jax.numpy.linalg.qr, jax.lax.linalg.qr, geqrf and householder_product, and what calls them, are batchqr's from now on, on
    CPUs and NVIDIA GPUs. Functions that were compiled before are compiled anew."""
    from jax._src.lax import linalg
    if _jax is None:
        raise RuntimeError("this build of batchqr is without JAX's headers: install it where jaxlib is installed")
    if _kept:
        return
    _replace(linalg.qr_p, lambda a, **_: _qr_call(a, False),
             lambda a, *, pivoting=False, full_matrices=False, **_:
             _has_type(a) and not pivoting and (not full_matrices or a.shape[-2] <= a.shape[-1]))
    _replace(linalg.geqrf_p, lambda a, **_: _geqrf_call(a, False), lambda a, **_: _has_type(a))
    _replace(linalg.householder_product_p, lambda a, tau, **_: _orgqr_call(a, tau), lambda a, tau, **_: _has_type(a))
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
